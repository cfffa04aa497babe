"""PURE. Cards that come by resource claims (DRA): checks of who fences them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.claim_requests import names_driver
from gpufence.findings import Finding, look, ok, unknown, wrong
from gpufence.mode import MODES
from gpufence.names import DRA_CLASSES, DRA_DRIVER, SYSTEM_NAMESPACE
from gpufence.shape import Object, as_object, as_text, objects
from gpufence.slices import read_slice
from kubectl_gpufence.scene import named
from kubectl_gpufence.table import counted, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.doctor.installation import Installation

_CLAIMS: Final = "claims"


class SliceCards(NamedTuple):
    """
    A node, and how many of its cards claims may have; `shared` of them count their memory, and give
    a claim that asks for none at least so much.
    """

    node: str
    cards: int
    shared: int
    least_bytes: int | None = None


class ServedClass(NamedTuple):
    """
    A DeviceClass, and the extended resource by which pods may ask for its devices, if any; `gpus`:
    these are NVIDIA's.
    """

    name: str
    resource: str
    gpus: bool = False


def read_published(raw: Object) -> SliceCards:
    """Read one ResourceSlice; one of another driver has no cards."""
    spec = as_object(raw.get("spec"), "spec")
    node = as_text(spec.get("nodeName"), "spec.nodeName")
    if spec.get("driver") != DRA_DRIVER:
        return SliceCards(node, 0, 0)
    read = read_slice(raw)
    devices = objects(spec.get("devices"), "spec.devices")
    shared = [item for item in devices if item.get("allowMultipleAllocations") is True]
    least = None if read is None else read.least_bytes
    return SliceCards(node, len(devices), len(shared), least)


def read_class(raw: Object) -> ServedClass:
    name = as_text(as_object(raw.get("metadata"), "metadata").get("name"), "metadata.name")
    spec = as_object(raw.get("spec"), "spec")
    resource = as_text(spec.get("extendedResourceName"), "extendedResourceName")
    return ServedClass(name, resource, gpus=name in DRA_CLASSES or names_driver(spec))


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
        yield from _served(installation)
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


def _served(installation: Installation) -> Iterator[Finding]:
    """Name the resources whose pods may get a part of a card where they expect a whole one."""
    least = [item.least_bytes for item in installation.published.value or [] if item.least_bytes]
    classes = [item for item in installation.classes.value or [] if item.gpus]
    for item in classes:
        if item.resource and least:
            yield look(
                _CLAIMS,
                f"{item.resource} is served by claims of class {item.name}: a pod that asks for "
                f"one gets as little as {readable(min(least))} of a card, and is held to that",
                "let pods claim an amount, or raise the default of the driver's sharing policy",
            )


def _pods(installation: Installation) -> Iterator[Finding]:
    """
    Name those that have a plan without a limit; whose claims are about other devices has no plan.
    """
    fenced = {item.name for item in installation.namespaces.value or [] if item.mode in MODES}
    planned = {
        f"{pod.namespace}/{pod.name}": plan
        for pod in installation.pods.value or []
        if pod.pod.claims and pod.namespace in fenced and (plan := pod.recorded.plan) is not None
    }
    without = [name for name, plan in planned.items() if plan.limit_bytes is None]
    if without:
        yield look(
            _CLAIMS,
            f"nothing was told to {counted(len(without), 'pod')} with claims: {named(without)}",
            "kubectl gpufence explain POD says why; agents hold them to what their claims consumed",
        )
    elif planned:
        yield ok(_CLAIMS, f"{counted(len(planned), 'pod')} with claims, each with its limit")
