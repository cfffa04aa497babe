"""
PURE. Cards that come by resource claims (DRA): checks of who fences them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.findings import Finding, look, ok, unknown, wrong
from gpufence.mode import MODES
from gpufence.names import DRA_DRIVER, SYSTEM_NAMESPACE
from gpufence.shape import Object, as_object, as_text, objects
from kubectl_gpufence.scene import named
from kubectl_gpufence.table import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.doctor.installation import Installation
    from kubectl_gpufence.pods import SeenPod

_CLAIMS: Final = "claims"


class SliceCards(NamedTuple):
    """
    A node, and how many of its cards claims may have; `shared` of them count their memory.
    """

    node: str
    cards: int
    shared: int


def read_published(raw: Object) -> SliceCards:
    """
    Read one ResourceSlice; one of another driver has no cards.
    """
    spec = as_object(raw.get("spec"), "spec")
    node = as_text(spec.get("nodeName"), "spec.nodeName")
    if spec.get("driver") != DRA_DRIVER:
        return SliceCards(node, 0, 0)
    devices = objects(spec.get("devices"), "spec.devices")
    shared = [item for item in devices if item.get("allowMultipleAllocations") is True]
    return SliceCards(node, len(devices), len(shared))


def check_claims(installation: Installation) -> Iterator[Finding]:
    """
    Find whether nodes that publish cards have agents, and which fenced pods have claims of which
    nothing is known. A cluster without such cards is not spoken of.
    """
    published = installation.published
    if published.hidden:
        yield unknown(_CLAIMS, published.hidden, "ask an administrator to run this")
        return
    nodes = sorted({item.node for item in published.value or [] if item.cards})
    if nodes:
        yield from _nodes(installation, nodes)
    yield from _pods(installation)


def _nodes(installation: Installation, nodes: list[str]) -> Iterator[Finding]:
    agents = installation.agents.value or {}
    without = [node for node in nodes if node not in agents]
    if without and not installation.agents.hidden:
        yield wrong(
            _CLAIMS,
            f"{counted(len(without), 'node')} with cards for claims without an agent: "
            f"{named(without)}",
            f"see `kubectl -n {SYSTEM_NAMESPACE} describe daemonset gpufence-agent`; where no "
            "label brings it, label the node nvidia.com/gpu.present=true",
        )
        return
    shared = sum(item.shared for item in installation.published.value or [])
    sharing = f"{counted(shared, 'card')} shared by memory" if shared else "none of them shared"
    yield ok(_CLAIMS, f"{counted(len(nodes), 'node')} with cards for claims, {sharing}")


def _pods(installation: Installation) -> Iterator[Finding]:
    fenced = {item.name for item in installation.namespaces.value or [] if item.mode in MODES}
    claiming = [
        pod for pod in installation.pods.value or [] if pod.pod.claims and pod.namespace in fenced
    ]
    without = [f"{pod.namespace}/{pod.name}" for pod in claiming if _is_doubtful(pod)]
    if without:
        yield look(
            _CLAIMS,
            f"nothing was told to {counted(len(without), 'pod')} with claims: {named(without)}",
            "kubectl gpufence explain POD says why; agents hold them to what their claims consumed",
        )
    elif claiming:
        yield ok(_CLAIMS, f"{counted(len(claiming), 'pod')} with claims, each with its limit")


def _is_doubtful(pod: SeenPod) -> bool:
    plan = pod.recorded.plan
    return plan is not None and plan.limit_bytes is None
