"""
PURE. What is remembered of each pod, and of the templates of pods: little, and what is alike once.

What a tenant can make long or many has a bound, far above what makes sense; beyond it nothing is
guessed at.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.model import PodState
from gpufence import names
from gpufence.candidates import wanted_resources
from gpufence.dialects import ANNOTATION_KEYS, CARD_KEYS, declares, gpu_requests
from gpufence.errors import InvalidError
from gpufence.pods import phase_sums, read_pod
from gpufence.times import read_moment
from kube.informers.views import MOST_CHARACTERS, UNREADABLE
from kube.owners import Reference, controller_of
from kube.replies import objects_of, only_texts, part_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpufence.pods import Pod
    from kube.informers.interning import Interner
    from kube.replies import JsonObject

MOST_CONTAINERS: Final = 512
MOST_TOLERATIONS: Final = 64
MOST_LABELS: Final = 64
PODS: Final = "pods"
"""Of which a node takes so many."""
_MEANT: Final = frozenset({*names.USER_KEYS, *ANNOTATION_KEYS, *CARD_KEYS, names.MIRROR})
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class KeptPod(NamedTuple):
    """
    A pod whose owner is still to be found, by what controls it; labels are None where they are too
    many to be kept.
    """

    state: PodState
    controller: Reference | None
    labels: Mapping[str, str] | None = {}


def keep_pod(pod: JsonObject, shared: Interner) -> tuple[str, KeptPod | None]:
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
    return uid, KeptPod(
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
