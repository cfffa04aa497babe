"""
PURE. What is remembered of each object that is watched beside the pods: little, and what is alike
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from controller.cluster.pods import PODS, read_state
from controller.model import NodeRoom, PodState
from gpufence import names
from gpufence.errors import InvalidError
from gpufence.nodes import figures_of
from gpufence.quantity import read_count
from kube.informers.views import MOST_CHARACTERS, UNREADABLE, view_node
from kube.owners import ApiOwner, owner_of
from kube.replies import objects_of, only_texts, part_of

if TYPE_CHECKING:
    from gpufence.dialects import Units
    from kube.informers.interning import Interner
    from kube.kinds import ApiKind
    from kube.replies import JsonObject

_WORDS: Final = (
    *(names.IDLE_AFTER, names.IDLE_AFTER_CONTENDED, names.KEEP_UNTIL, names.WAKE),
    names.PODS_WITHOUT_GPU,
    *(names.RELEASED, names.STOPPED),
)


class KeptOwner(NamedTuple):
    """Whoever may own pods; `template` is the next of them, where it asks for a GPU."""

    owner: ApiOwner
    template: PodState | None = None


class ScaleTarget(NamedTuple):
    """Whom an autoscaler scales."""

    namespace: str
    group: str
    kind: str
    name: str


def keep_owner(item: JsonObject, kind: ApiKind, shared: Interner) -> tuple[str, KeptOwner | None]:
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
        return owner.uid, None if gone else KeptOwner(owner)
    template = part_of(part_of(item, "spec"), "template")
    metadata = {**part_of(template, "metadata"), "namespace": owner.namespace, "name": owner.name}
    state = read_state(metadata, part_of(template, "spec"), shared, always_gpu=False)
    return owner.uid, KeptOwner(owner, None if state.gpu is None else state)


def keep_node(node: JsonObject, units: Units, shared: Interner) -> tuple[str, NodeRoom | None]:
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


def keep_scaler(scaler: JsonObject) -> tuple[str, tuple[ScaleTarget, str]]:
    """
    Keep whom an autoscaler scales, and its name: of a HorizontalPodAutoscaler or a ScaledObject,
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


def keep_agent(pod: JsonObject) -> tuple[str, tuple[str, str] | None]:
    """Keep on which node an agent runs, and its address."""
    metadata, spec, status = (part_of(pod, key) for key in ("metadata", "spec", "status"))
    node, address = str(spec.get("nodeName", "")), str(status.get("podIP", ""))
    running = status.get("phase") == "Running" and metadata.get("deletionTimestamp") is None
    return str(metadata.get("uid", "")), (node, address) if running and address else None
