"""
PURE. What is remembered of each pod, of templates of pods, and of every other object that is
watched: little, and what is alike once; and how many pods may go by the PodDisruptionBudgets that
cover them.

What a tenant can make long or many has a bound, far above what makes sense; beyond it nothing is
guessed at.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from controller.model import NodeRoom, PodState
from gpufence import names
from gpufence.candidates import wanted_resources
from gpufence.dialects import ANNOTATION_KEYS, CARD_KEYS, declares, gpu_requests
from gpufence.errors import InvalidError
from gpufence.nodes import figures_of
from gpufence.pods import phase_sums, read_pod
from gpufence.quantity import read_count
from gpufence.times import read_moment
from kube.informers.views import MOST_CHARACTERS, UNREADABLE, view_node
from kube.owners import ApiOwner, Reference, controller_of, owner_of
from kube.replies import objects_of, only_texts, part_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gpufence.dialects import Units
    from gpufence.pods import Pod
    from kube.informers.views import Interner
    from kube.kinds import ApiKind
    from kube.replies import JsonObject


MOST_CONTAINERS: Final = 512
MOST_TOLERATIONS: Final = 64
MOST_LABELS: Final = 64
PODS: Final = "pods"
"""Of which a node takes so many."""
_MEANT: Final = frozenset({*names.USER_KEYS, *ANNOTATION_KEYS, *CARD_KEYS, names.MIRROR})
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class PodProjection(NamedTuple):
    """
    A pod whose owner is still to be found, by what controls it; labels are None where they are too
    many to be kept.
    """

    state: PodState
    controller: Reference | None
    labels: Mapping[str, str] | None = {}


def project_pod(pod: JsonObject, shared: Interner) -> tuple[str, PodProjection | None]:
    """
    Keep, by UID, what decides whether it is idle, waits, or takes room; what ended is forgotten.
    """
    metadata, spec, status = (part_of(pod, key) for key in ("metadata", "spec", "status"))
    uid, phase = str(metadata.get("uid", "")), str(status.get("phase", ""))
    if phase in {"Succeeded", "Failed"}:
        return uid, None
    conditions = {str(item.get("type")): item for item in objects_of(status, "conditions")}
    idle = conditions.get(names.GPU_IDLE, {})
    placed = conditions.get("PodScheduled", {})
    ready, initialized = (conditions.get(kind, {}) for kind in ("Ready", "Initialized"))
    waits = placed.get("status") == "False" and placed.get("reason") == "Unschedulable"
    controller = controller_of(metadata)
    state = read_state(metadata, spec, shared, always_gpu=bool(idle))._replace(
        uid=uid,
        phase=shared.value(phase),
        terminating=metadata.get("deletionTimestamp") is not None,
        initializing=initialized.get("status") == "False",
        ready_at=_since(ready) if ready.get("status") == "True" else None,
        waiting_since=_since(placed) if waits else None,
        idle=shared.value(str(idle.get("status", ""))),
        idle_at=_since(idle) if idle else None,
    )
    labels = texts_of(metadata, "labels")
    return uid, PodProjection(
        state,
        None if controller is None else shared.value(controller),
        None if len(labels) > MOST_LABELS else shared.json(labels),
    )


def read_state(
    metadata: JsonObject, spec: JsonObject, shared: Interner, *, always_gpu: bool
) -> PodState:
    """Read what a pod, or a template of pods, asks for."""
    gpu, unread = _gpu(metadata, spec, shared, always_gpu=always_gpu)
    tolerations = islice(objects_of(spec, "tolerations"), MOST_TOLERATIONS)
    priority = spec.get("priority")
    return PodState(
        uid="",
        namespace=shared.value(str(metadata.get("namespace", ""))),
        name=str(metadata.get("name", "")),
        owner=None,
        node=shared.value(str(spec.get("nodeName", ""))),
        phase="",
        priority=priority if isinstance(priority, int) else 0,
        requests=shared.json(_requests(gpu)),
        gpu=gpu,
        # Only who asks for GPUs is ever looked for a place.
        tolerations=tuple(shared.json(only_texts(item)) for item in tolerations) if gpu else (),
        placement=unread or shared.value(", ".join(_placement(spec))) if gpu else "",
    )


def _gpu(
    metadata: JsonObject, spec: JsonObject, shared: Interner, *, always_gpu: bool
) -> tuple[Pod | None, str]:
    """Read what a pod asks of GPUs, and say what of it was too much to be kept."""
    meant = {
        key: text if len(text) <= MOST_CHARACTERS else UNREADABLE
        for key, text in texts_of(metadata, "annotations").items()
        if key in _MEANT or key.startswith(names.MEMORY_OF_CONTAINER) or declares(key)
    }
    kept = {
        **spec,
        "containers": objects_of(spec, "containers")[:MOST_CONTAINERS],
        "initContainers": objects_of(spec, "initContainers")[:MOST_CONTAINERS],
    }
    unread = ""
    if _length(spec.get("affinity")) + _length(spec.get("nodeSelector")) > MOST_CHARACTERS:
        kept |= {"affinity": None, "nodeSelector": None}
        unread = "its affinity is too long to be read"
    try:
        pod = read_pod({"metadata": {"annotations": meant}, "spec": kept})
    except InvalidError:
        return None, ""
    if not (wanted_resources(pod) or any(map(declares, meant)) or always_gpu):
        return None, ""
    containers = tuple(
        item._replace(name=shared.value(item.name), gpu=shared.json(item.gpu))
        for item in pod.containers[:MOST_CONTAINERS]
    )
    # Containers hold dicts, so that they are shared by what they say.
    whole = pod._replace(
        annotations=shared.json(meant),
        containers=shared.same(json.dumps(containers), containers),
        node_name=shared.value(pod.node_name),
        node_selector=shared.json(pod.node_selector),
        affinity=shared.json(pod.affinity),
    )
    said = json.dumps([*whole._replace(served=frozenset()), sorted(whole.served)], default=list)
    return shared.same(said, whole), unread


def _requests(gpu: Pod | None) -> dict[str, int]:
    """
    Add up what a pod asks for of each GPU resource while its containers ask for the most, and its
    place among the node's pods; what cannot be read counts for nothing.
    """
    try:
        asked = [] if gpu is None else gpu_requests(gpu)
    except InvalidError:
        asked = []
    requests = {}
    for resource in sorted({name for item in asked for name in item.counts}):
        weights = {item.container.name: item.counts.get(resource, 0) for item in asked}
        requests[resource] = max(phase_sums(gpu, weights)) if gpu else 0
    return {**requests, PODS: 1}


def _placement(spec: JsonObject) -> Iterator[str]:
    """Yield what decides where a pod may run and is not worked out."""
    affinity = part_of(spec, "affinity")
    for key, text in (("podAffinity", "pod affinity"), ("podAntiAffinity", "pod anti-affinity")):
        if part_of(affinity, key).get(_REQUIRED):
            yield f"a required {text}"
    spreads = objects_of(spec, "topologySpreadConstraints")
    if any(item.get("whenUnsatisfiable") != "ScheduleAnyway" for item in spreads):
        yield "a hard topology spread"
    containers = [*objects_of(spec, "containers"), *objects_of(spec, "initContainers")]
    if any(port.get("hostPort") for item in containers for port in objects_of(item, "ports")):
        yield "host ports"
    if any(
        "persistentVolumeClaim" in item or "ephemeral" in item
        for item in objects_of(spec, "volumes")
    ):
        yield "volumes that are bound to places"


def _since(condition: JsonObject) -> float | None:
    try:
        return read_moment(str(condition.get("lastTransitionTime", "")), "lastTransitionTime")
    except InvalidError:
        return None


def _length(value: object) -> int:
    return len(json.dumps(value)) if value else 0


MOST_REQUIREMENTS: Final = 64
"""Beyond it a budget counts as one that covers every pod of its namespace."""
_WORDS: Final = (
    *(names.IDLE_AFTER, names.IDLE_AFTER_CONTENDED, names.KEEP_UNTIL, names.WAKE),
    names.PODS_WITHOUT_GPU,
    *(names.RELEASED, names.STOPPED),
)


class OwnerProjection(NamedTuple):
    """Whoever may own pods; `template` is the next of them, where it asks for a GPU."""

    owner: ApiOwner
    template: PodState | None = None


class ScaleTarget(NamedTuple):
    """Whom an autoscaler scales."""

    namespace: str
    group: str
    kind: str
    name: str


def project_owner(
    item: JsonObject, kind: ApiKind, shared: Interner
) -> tuple[str, OwnerProjection | None]:
    """Keep, by UID, who may own pods; old ReplicaSets, of which there are many, own none."""
    owner = owner_of(kind, item)
    words = {
        key: text if len(text) <= MOST_CHARACTERS else UNREADABLE
        for key, text in owner.annotations.items()
        if key in _WORDS
    }
    owner = owner._replace(
        namespace=shared.value(owner.namespace),
        annotations=shared.json(words),
        controller=None if owner.controller is None else shared.value(owner.controller),
    )
    if owner.controller is not None:
        there = part_of(item, "status").get("replicas")
        gone = owner.replicas == 0 and not there and names.RELEASED not in words
        return owner.uid, None if gone else OwnerProjection(owner)
    template = part_of(part_of(item, "spec"), "template")
    metadata = {**part_of(template, "metadata"), "namespace": owner.namespace, "name": owner.name}
    state = read_state(metadata, part_of(template, "spec"), shared, always_gpu=False)
    return owner.uid, OwnerProjection(owner, None if state.gpu is None else state)


def project_node(node: JsonObject, units: Units, shared: Interner) -> tuple[str, NodeRoom | None]:
    """
    Keep of a GPU node what decides who may run there; of another one, or one that cannot be read,
    nothing.
    """
    name, found = view_node(node, units, shared)
    if found is None:
        return name, None
    spec = part_of(node, "spec")
    return name, NodeRoom(
        node=found,
        allocatable=shared.json(_offered(node)),
        taints=tuple(shared.json(only_texts(item)) for item in objects_of(spec, "taints")),
        unschedulable=spec.get("unschedulable") is True,
    )


def _offered(node: JsonObject) -> dict[str, int]:
    """Read what a node has of GPU resources, and for how many pods it has places, if it says so."""
    found = figures_of(node, "allocatable")
    pods = part_of(part_of(node, "status"), "allocatable").get(PODS)
    try:
        return found if pods is None else {**found, PODS: read_count(pods, PODS)}
    except InvalidError:
        return found


def project_scaler(scaler: JsonObject) -> tuple[str, tuple[ScaleTarget, str]]:
    """
    Keep what an autoscaler scales, and its name: of a HorizontalPodAutoscaler or a ScaledObject,
    which means a Deployment where it names no kind.
    """
    metadata = part_of(scaler, "metadata")
    aim = part_of(part_of(scaler, "spec"), "scaleTargetRef")
    api_version = str(aim.get("apiVersion") or "apps/v1")
    target = ScaleTarget(
        namespace=str(metadata.get("namespace", "")),
        group=api_version.rpartition("/")[0],
        kind=str(aim.get("kind") or "Deployment"),
        name=str(aim.get("name", "")),
    )
    return str(metadata.get("uid", "")), (target, str(metadata.get("name", "")))


def project_agent(pod: JsonObject) -> tuple[str, tuple[str, str] | None]:
    """Keep on which node an agent runs, and its address."""
    metadata, spec, status = (part_of(pod, key) for key in ("metadata", "spec", "status"))
    node, address = str(spec.get("nodeName", "")), str(status.get("podIP", ""))
    running = status.get("phase") == "Running" and metadata.get("deletionTimestamp") is None
    return str(metadata.get("uid", "")), (node, address) if running and address else None


class Requirement(NamedTuple):
    """One line of a selector."""

    key: str
    operator: str
    values: frozenset[str]


class BudgetProjection(NamedTuple):
    """A budget. `selector` is None where it covers nobody."""

    namespace: str
    selector: tuple[Requirement, ...] | None
    allowed: int


def project_budget(budget: JsonObject) -> tuple[str, BudgetProjection]:
    """Keep which pods a budget covers, and how many may go; none where it does not say yet."""
    metadata, spec, status = (part_of(budget, key) for key in ("metadata", "spec", "status"))
    allowed = status.get("disruptionsAllowed")
    current = status.get("observedGeneration") == metadata.get("generation")
    return str(metadata.get("uid", "")), BudgetProjection(
        namespace=str(metadata.get("namespace", "")),
        selector=_selector(spec.get("selector")),
        allowed=allowed if isinstance(allowed, int) and current else 0,
    )


def least_allowed(
    budgets: Iterable[BudgetProjection], labels: Collection[Mapping[str, str] | None]
) -> int | None:
    """
    Return how many pods with these labels may go at once by the budgets of their namespace; None
    where no budget covers any of them. A pod whose labels nobody knows is covered by each.
    """
    return min(
        (
            budget.allowed
            for budget in budgets
            if budget.selector is not None
            and any(each is None or _covers(budget.selector, each) for each in labels)
        ),
        default=None,
    )


def _selector(selector: Any) -> tuple[Requirement, ...] | None:  # noqa: ANN401 - JSON as it came
    if not isinstance(selector, dict):
        return None
    found = [
        Requirement(key, "In", frozenset([str(value)]))
        for key, value in part_of(selector, "matchLabels").items()
    ]
    for item in selector.get("matchExpressions") or []:
        values = item.get("values") or []
        operator = str(item.get("operator"))
        found.append(Requirement(str(item.get("key")), operator, frozenset(map(str, values))))
    return tuple(found) if len(found) <= MOST_REQUIREMENTS else ()


def _covers(selector: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    return all(_holds(requirement, labels) for requirement in selector)


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "Exists":
        return value is not None
    if requirement.operator == "DoesNotExist":
        return value is None
    among = value in requirement.values
    return among if requirement.operator == "In" else not among
