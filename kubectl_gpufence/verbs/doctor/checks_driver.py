"""PURE. The driver's own limits: what is switched on, what nodes can, and which pods are held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.canary import Proof, read_note
from gpufence.errors import Finding, look, ok, unknown, wrong
from gpufence.fences import FIRST_DRIVER, Fence, is_too_old
from gpufence.names import DRIVER_LIMITS, DRIVER_SETTING, LIMIT_ABSENT
from gpufence.shape import as_object, as_text, objects
from kubectl_gpufence.cluster_view import is_stale, named, row_of
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sized

    from gpufence.shape import Object
    from gpufence.snapshot import Snapshot
    from kubectl_gpufence.cluster_view import SeenNode
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.verbs.doctor.installation import Installation

_SUBJECT: Final = "driver limits"
_OFF: Final = "off"
_LABELLED: Final = "labelled"
_BY_LABEL: Final = (_LABELLED, "auto")
_PAGE: Final = "docs/driver-limits.md"
_ASK: Final = "ask an administrator to run this"
_UNLABEL: Final = f"kubectl label node {{}} {DRIVER_LIMITS}-, and see {_PAGE}"
_UNSET: Final = f"kubectl cordon {{}}, or set driverLimits to labelled ({_PAGE})"
_CANARY: Final = f"{_PAGE}#let-a-canary-label-nodes"
_TRY: Final = "run the pod of docs/driver-limits.md#try-a-node there"


class _PlannedPods(NamedTuple):
    """Pods that the driver holds by the webhook's plan, by what their agents say."""

    by_driver: list[str]
    otherwise: list[str]
    nodes: set[str]


def is_on(deployment: Object, nodes: Iterable[SeenNode]) -> bool:
    """Return whether a webhook writes limits for the driver, or may: some node is labelled."""
    return _setting(deployment) != _OFF or any(node.limits for node in nodes)


def check_driver(installation: Installation) -> Iterator[Finding]:
    """
    Find whether nodes, agents and pods bear out what is switched on. What no pod has shown yet is
    unknown: neither driver nor labels tell what a node's toolkit does.
    """
    deployment, nodes = installation.deployment, installation.nodes
    labelled = {name: node for name, node in (nodes.value or {}).items() if node.limits}
    if deployment.value is None and not labelled:
        return  # nothing says that it was switched on
    setting = _LABELLED if deployment.value is None else _setting(deployment.value)
    if setting == _OFF:
        if labelled:
            said = f"{_nodes(labelled)} labelled {DRIVER_LIMITS}, and the webhook writes no limit"
            yield look(_SUBJECT, said, f"install component driver-limits ({_PAGE})")
        return
    if nodes.hidden or installation.agents.hidden:
        yield unknown(_SUBJECT, nodes.hidden or installation.agents.hidden, _ASK)
        return
    with_gpu = {name: node for name, node in (nodes.value or {}).items() if node.gpu or node.cards}
    if setting in _BY_LABEL:
        yield from _not_proved(nodes.value or {})
    yield from _of_nodes(installation, setting, labelled if setting in _BY_LABEL else with_gpu)


def _not_proved(nodes: Mapping[str, SeenNode]) -> Iterator[Finding]:
    """Say why nodes have no label, as far as their canaries have shown it."""
    reasons: dict[str, list[str]] = {}
    for name, node in sorted(nodes.items()):
        note = read_note(node.canary)
        if note is not None and note.why and not node.limits:
            reasons.setdefault(note.why, []).append(name)
    for why, found in reasons.items():
        yield look(_SUBJECT, f"{_nodes(found)} without the label, {named(found)}: {why}", _CANARY)


def _of_nodes(
    installation: Installation, setting: str, nodes: Mapping[str, SeenNode]
) -> Iterator[Finding]:
    if not nodes:
        said = f"switched on ({setting}), and no node has it: no pod gets such a limit"
        yield look(_SUBJECT, said, f"label nodes that can: {_PAGE}")
        return
    held = _held(installation)
    unseen: list[str] = []
    passed: list[str] = []
    remedy = _UNLABEL if setting in _BY_LABEL else _UNSET
    for name, node in sorted(nodes.items()):
        agent = (installation.agents.value or {}).get(name)
        snapshot = None if agent is None else agent.snapshot
        trouble = _trouble(node, snapshot)
        if trouble:
            yield wrong(_SUBJECT, f"{name}: {trouble}", remedy.format(name))
        elif snapshot is None or is_stale(snapshot) or name not in held.nodes:
            (passed if _is_proved(node, snapshot) else unseen).append(name)
    if held.otherwise:
        said = f"written for {counted(len(held.otherwise), 'pod')} that no driver holds"
        why = f"the Events {LIMIT_ABSENT} say why"
        yield look(_SUBJECT, f"{said}: {named(held.otherwise)}", why)
    if unseen:
        said = f"{_nodes(unseen)} on which no agent has seen a driver hold a pod: {named(unseen)}"
        yield unknown(_SUBJECT, said, _TRY)
    if passed:
        yield ok(_SUBJECT, f"{_nodes(passed)} whose canary is held: {named(passed)}")
    if held.by_driver:
        said = f"{counted(len(held.by_driver), 'pod')} held, as agents read back"
        yield ok(_SUBJECT, f"{said}, on {_nodes(held.nodes)}")


def _is_proved(node: SeenNode, snapshot: Snapshot | None) -> bool:
    note, fresh = read_note(node.canary), snapshot is not None and not is_stale(snapshot)
    return fresh and note is not None and note.shown is Proof.PASSED


def _held(installation: Installation) -> _PlannedPods:
    held = _PlannedPods([], [], set())
    for pod in installation.pods.value or []:
        agent = (installation.agents.value or {}).get(pod.node)
        fences = _fences(pod, None if agent is None else agent.snapshot)
        if fences and pod.planned_fence is Fence.DRIVER:
            is_held = fences == {Fence.DRIVER}
            (held.by_driver if is_held else held.otherwise).append(f"{pod.namespace}/{pod.name}")
            held.nodes.update({pod.node} if is_held else ())
    return held


def _fences(pod: SeenPod, snapshot: Snapshot | None) -> set[str]:
    row = row_of(pod, snapshot)
    return set() if row is None else {use.fence for use in row.uses}


def _trouble(node: SeenNode, snapshot: Snapshot | None) -> str:
    """Return what stands against limits on a node, as far as it is known."""
    if snapshot is not None and snapshot.limits_trouble:
        return snapshot.limits_trouble
    cards = () if node.cards is None else node.cards.cards
    if any(card.mig for card in cards):
        return "it has MIG instances, for which the driver takes no limit"
    driver = "" if node.cards is None else node.cards.driver
    said = f"its driver is {driver}, before {FIRST_DRIVER}: no container with a limit starts there"
    return said if is_too_old(driver) else ""


def _setting(deployment: Object) -> str:
    spec = as_object(deployment.get("spec"), "spec")
    template = as_object(spec.get("template"), "spec.template")
    pod = as_object(template.get("spec"), "spec.template.spec")
    for container in objects(pod.get("containers"), "containers"):
        for entry in objects(container.get("env"), "env"):
            if entry.get("name") == DRIVER_SETTING:
                return as_text(entry.get("value"), "value") or _OFF
    return _OFF


def _nodes(nodes: Sized) -> str:
    return counted(len(nodes), "node")
