"""
PURE. What is remembered of each object that is watched: little, and the same things once.

Pods of one owner are alike, so that what they have in common is held once. What a tenant can make
long or many has a bound, far above what makes sense; beyond it nothing is guessed at.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from controller.cluster.requests import effective_requests, offered
from controller.model import NodeRoom, PodState
from gpufence import names
from gpufence.candidates import wanted_resources
from gpufence.dialects import ANNOTATION_KEYS, CARD_KEYS
from gpufence.errors import InvalidError
from gpufence.nodes import read_node
from gpufence.pods import read_pod
from gpufence.times import read_moment
from kube.workloads import ApiOwner, Reference, controller_of, owner_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from gpufence.dialects import Units
    from gpufence.pods import Pod
    from kube import JsonObject
    from kube.kinds import ApiKind

H = TypeVar("H", bound="Hashable")
T = TypeVar("T")

MOST_SHARED: Final = 32768
MOST_CONTAINERS: Final = 512
MOST_TOLERATIONS: Final = 64
MOST_CHARACTERS: Final = 2**15
"""
Of what one pod, or one owner, says where it may run, and in one of its annotations.
"""
UNREADABLE: Final = "..."
_MEANT: Final = frozenset({*names.USER_KEYS, *ANNOTATION_KEYS, *CARD_KEYS, names.MIRROR})
_WORDS: Final = (
    *(names.IDLE_AFTER, names.IDLE_AFTER_CONTENDED, names.KEEP_UNTIL, names.WAKE),
    *(names.RELEASED, names.STOPPED),
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Shared:
    """
    Returns of equal values the very same one; what it remembers has a bound.
    """

    def __init__(self) -> None:
        self._json: dict[bytes, Any] = {}
        self._values: dict[Any, Any] = {}

    def json(self, value: Any) -> Any:  # noqa: ANN401 - JSON as it came
        """
        Share what was read of JSON, by what it says.
        """
        return self.same(json.dumps(value, separators=(",", ":")), value)

    def same(self, said: str, value: T) -> T:
        """
        Share what says the same.
        """
        key = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        shared: T = self._first(self._json, key, value)
        return shared

    def value(self, value: H) -> H:
        shared: H = self._first(self._values, value, value)
        return shared

    def _first(self, known: dict[Any, Any], key: object, value: object) -> Any:  # noqa: ANN401
        if len(known) >= MOST_SHARED:
            known.clear()
        return known.setdefault(key, value)


class KeptPod(NamedTuple):
    """
    A pod whose owner is still to be found, by who controls it.
    """

    state: PodState
    controller: Reference | None


class KeptOwner(NamedTuple):
    """
    Whoever may own pods; `template` is the next of them, where it asks for a GPU.
    """

    owner: ApiOwner
    template: PodState | None = None


class Target(NamedTuple):
    """
    Whom an autoscaler scales.
    """

    namespace: str
    group: str
    kind: str
    name: str


class NamespaceWords(NamedTuple):
    """
    What a namespace says to us: its labels and annotations that are ours.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


KeptPods: TypeAlias = "tuple[str, KeptPod | None]"


def keep_pod(pod: JsonObject, shared: Shared) -> KeptPods:
    """
    Keep, by UID, what decides whether it is idle, waits, or takes room; what ended is forgotten.
    """
    metadata, spec, status = (_part(pod, key) for key in ("metadata", "spec", "status"))
    uid, phase = str(metadata.get("uid", "")), str(status.get("phase", ""))
    if phase in {"Succeeded", "Failed"}:
        return uid, None
    conditions = {str(item.get("type")): item for item in _objects(status, "conditions")}
    idle = conditions.get(names.GPU_IDLE, {})
    placed = conditions.get("PodScheduled", {})
    ready = conditions.get("Ready", {})
    waits = placed.get("status") == "False" and placed.get("reason") == "Unschedulable"
    controller = controller_of(metadata)
    state = _state(metadata, spec, shared, always_gpu=bool(idle))._replace(
        uid=uid,
        phase=shared.value(phase),
        terminating=metadata.get("deletionTimestamp") is not None,
        ready_at=_since(ready) if ready.get("status") == "True" else None,
        waiting_since=_since(placed) if waits else None,
        idle=shared.value(str(idle.get("status", ""))),
        idle_at=_since(idle) if idle else None,
    )
    return uid, KeptPod(state, None if controller is None else shared.value(controller))


def keep_owner(item: JsonObject, kind: ApiKind, shared: Shared) -> tuple[str, KeptOwner | None]:
    """
    Keep, by UID, who may own pods; old ReplicaSets, of which there are many, own none.
    """
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
        there = _part(item, "status").get("replicas")
        gone = owner.replicas == 0 and not there and names.RELEASED not in words
        return owner.uid, None if gone else KeptOwner(owner)
    template = _part(_part(item, "spec"), "template")
    metadata = {**_part(template, "metadata"), "namespace": owner.namespace, "name": owner.name}
    state = _state(metadata, _part(template, "spec"), shared, always_gpu=False)
    return owner.uid, KeptOwner(owner, None if state.gpu is None else state)


def keep_node(node: JsonObject, units: Units, shared: Shared) -> tuple[str, NodeRoom | None]:
    """
    Keep of a GPU node what decides who may run there; of another one, or one that cannot be read,
    nothing.
    """
    metadata, spec, status = (_part(node, key) for key in ("metadata", "spec", "status"))
    name = str(metadata.get("name", ""))
    try:
        found = read_node(node, units)
    except InvalidError:
        found = None
    if found is None:
        return name, None
    labels = {shared.value(key): shared.value(text) for key, text in found.labels.items()}
    found = found._replace(
        labels=labels,
        resources=shared.value(found.resources),
        cards=shared.value(found.cards),
        units=shared.value(found.units),
    )
    return name, NodeRoom(
        node=found,
        allocatable=shared.json(offered(_part(status, "allocatable"))),
        taints=tuple(shared.json(_texts(item)) for item in _objects(spec, "taints")),
        unschedulable=spec.get("unschedulable") is True,
    )


def keep_namespace(namespace: JsonObject) -> tuple[str, NamespaceWords | None]:
    """
    Keep what a namespace says to us, where it says whether it is fenced or what becomes of idle
    GPUs.
    """
    metadata = _part(namespace, "metadata")
    labels, annotations = (
        {
            key: text if len(text) <= MOST_CHARACTERS else UNREADABLE
            for key, text in _texts(_part(metadata, part)).items()
            if key.startswith(names.PREFIX)
        }
        for part in ("labels", "annotations")
    )
    concerned = names.MODE in labels or names.IDLE in labels
    return str(metadata.get("name", "")), NamespaceWords(labels, annotations) if concerned else None


def keep_policy(policy: JsonObject) -> tuple[str, Mapping[str, str]]:
    """
    Keep what the kill switch says.
    """
    data = _texts(_part(policy, "data"))
    name = str(_part(policy, "metadata").get("name", ""))
    return name, {key: text for key, text in data.items() if key == names.POLICY_MAX_IDLE}


def keep_scaler(scaler: JsonObject) -> tuple[str, tuple[Target, str]]:
    """
    Keep whom an autoscaler scales, and its name: of a HorizontalPodAutoscaler or a ScaledObject,
    which means a Deployment where it names no kind.
    """
    metadata = _part(scaler, "metadata")
    aim = _part(_part(scaler, "spec"), "scaleTargetRef")
    api_version = str(aim.get("apiVersion") or "apps/v1")
    target = Target(
        namespace=str(metadata.get("namespace", "")),
        group=api_version.rpartition("/")[0],
        kind=str(aim.get("kind") or "Deployment"),
        name=str(aim.get("name", "")),
    )
    return str(metadata.get("uid", "")), (target, str(metadata.get("name", "")))


def keep_agent(pod: JsonObject) -> tuple[str, tuple[str, str] | None]:
    """
    Keep on which node an agent runs, and its address.
    """
    metadata, spec, status = (_part(pod, key) for key in ("metadata", "spec", "status"))
    node, address = str(spec.get("nodeName", "")), str(status.get("podIP", ""))
    running = status.get("phase") == "Running" and metadata.get("deletionTimestamp") is None
    return str(metadata.get("uid", "")), (node, address) if running and address else None


def _state(metadata: JsonObject, spec: JsonObject, shared: Shared, *, always_gpu: bool) -> PodState:
    """
    Read what a pod, or a template of pods, asks for.
    """
    gpu, unread = _gpu(metadata, spec, shared, always_gpu=always_gpu)
    tolerations = islice(_objects(spec, "tolerations"), MOST_TOLERATIONS)
    priority = spec.get("priority")
    return PodState(
        uid="",
        namespace=shared.value(str(metadata.get("namespace", ""))),
        name=str(metadata.get("name", "")),
        owner=None,
        node=shared.value(str(spec.get("nodeName", ""))),
        phase="",
        priority=priority if isinstance(priority, int) else 0,
        requests=shared.json(effective_requests(spec)),
        gpu=gpu,
        # Only who asks for GPUs is ever looked for a place.
        tolerations=tuple(shared.json(_texts(item)) for item in tolerations) if gpu else (),
        placement=unread or shared.value(", ".join(_placement(spec))) if gpu else "",
    )


def _gpu(
    metadata: JsonObject, spec: JsonObject, shared: Shared, *, always_gpu: bool
) -> tuple[Pod | None, str]:
    """
    Read what a pod asks of GPUs, and say what of it was too much to be kept.
    """
    meant = {
        key: text if len(text) <= MOST_CHARACTERS else UNREADABLE
        for key, text in _texts(_part(metadata, "annotations")).items()
        if key in _MEANT or key.startswith(names.MEMORY_OF_CONTAINER)
    }
    kept = {
        **spec,
        "containers": _objects(spec, "containers")[:MOST_CONTAINERS],
        "initContainers": _objects(spec, "initContainers")[:MOST_CONTAINERS],
    }
    unread = ""
    if _length(spec.get("affinity")) + _length(spec.get("nodeSelector")) > MOST_CHARACTERS:
        kept |= {"affinity": None, "nodeSelector": None}
        unread = "its affinity is too long to be read"
    try:
        pod = read_pod({"metadata": {"annotations": meant}, "spec": kept})
    except InvalidError:
        return None, ""
    if not (wanted_resources(pod) or ANNOTATION_KEYS.keys() & meant.keys() or always_gpu):
        return None, ""
    containers = tuple(
        item._replace(name=shared.value(item.name), gpu=shared.json(item.gpu))
        for item in pod.containers[:MOST_CONTAINERS]
    )
    # Containers hold dicts, so that they are shared by what they say.
    said = json.dumps([[item.name, item.kind, item.gpu, item.field] for item in containers])
    return pod._replace(
        annotations=shared.json(meant),
        containers=shared.same(said, containers),
        node_name=shared.value(pod.node_name),
        node_selector=shared.json(pod.node_selector),
        affinity=shared.json(pod.affinity),
    ), unread


def _placement(spec: JsonObject) -> Iterator[str]:
    """
    Yield what decides where a pod may run and is not worked out.
    """
    affinity = _part(spec, "affinity")
    for key, text in (("podAffinity", "pod affinity"), ("podAntiAffinity", "pod anti-affinity")):
        if _part(affinity, key).get(_REQUIRED):
            yield f"a required {text}"
    spreads = _objects(spec, "topologySpreadConstraints")
    if any(item.get("whenUnsatisfiable") != "ScheduleAnyway" for item in spreads):
        yield "a hard topology spread"
    containers = [*_objects(spec, "containers"), *_objects(spec, "initContainers")]
    if any(port.get("hostPort") for item in containers for port in _objects(item, "ports")):
        yield "host ports"


def _since(condition: JsonObject) -> float | None:
    try:
        return read_moment(str(condition.get("lastTransitionTime", "")), "lastTransitionTime")
    except InvalidError:
        return None


def _length(value: object) -> int:
    return len(json.dumps(value)) if value else 0


def _texts(item: Mapping[str, Any]) -> dict[str, str]:
    return {key: text for key, text in item.items() if isinstance(text, str)}


def _objects(item: JsonObject, key: str) -> list[JsonObject]:
    listed = item.get(key)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _part(item: JsonObject, key: str) -> JsonObject:
    value = item.get(key)
    return value if isinstance(value, dict) else {}
