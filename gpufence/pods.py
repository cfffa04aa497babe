"""
What gpufence reads of a pod, wherever the pod comes from.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gpufence.dialects import GPU_RESOURCES, PREFIXES
from gpufence.names import (
    CUDA_LIMIT,
    KAI_FRACTION,
    KAI_ISOLATE,
    KAI_ISOLATOR,
    KAI_MEMORY,
)
from gpufence.shape import Object, as_list, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction
    from typing import TypeVar

    T = TypeVar("T", int, Fraction)


KAI_KEYS = frozenset((KAI_MEMORY, KAI_FRACTION))


class ContainerKind(StrEnum):
    """
    When a container runs: what decides whose memory adds up.
    """

    REGULAR = "container"
    SIDECAR = "sidecar"  # an init container that stays (restartPolicy Always)
    INIT = "init container"  # runs alone, beside the sidecars before it


class Container(NamedTuple):
    """
    A container; of its resource limits, `gpu` are those that declare something about GPUs.
    """

    name: str
    kind: ContainerKind
    gpu: Object
    field: str

    @property
    def regular(self) -> bool:
        return self.kind is ContainerKind.REGULAR


class Pod(NamedTuple):
    """
    A pod as far as its GPU memory goes.

    Its phases are the sets of containers that run together: each init container with the sidecars
    that were started before it, and last the pod's life. Nobody lists them, since that takes the
    square of the number of containers: `phase_sums` and `smallest_of_phases` do the sums.

    `isolated` pods see their limit as the card's memory, by the isolator that KAI may have put into
    them.
    """

    annotations: Mapping[str, str]
    containers: tuple[Container, ...]
    node_name: str
    node_selector: Mapping[str, str]
    affinity: Object
    has_resource_claims: bool
    isolated: bool = False


def read_pod(pod: Object) -> Pod:
    """
    Read a pod, raising `InvalidError` where it is no pod at all.
    """
    metadata = as_object(pod.get("metadata"), "metadata")
    spec = as_object(pod.get("spec"), "spec")
    affinity = spec.get("affinity")
    if affinity is not None:
        affinity = as_object(affinity, "spec.affinity").get("nodeAffinity")
    annotations = as_texts(metadata.get("annotations"), "metadata.annotations")
    return Pod(
        annotations=annotations,
        containers=_read_containers(spec),
        node_name=as_text(spec.get("nodeName"), "spec.nodeName"),
        node_selector=as_texts(spec.get("nodeSelector"), "spec.nodeSelector"),
        affinity=as_object(affinity, "spec.affinity.nodeAffinity"),
        has_resource_claims=bool(as_list(spec.get("resourceClaims"), "spec.resourceClaims")),
        isolated=not KAI_KEYS.isdisjoint(annotations) and _is_isolated(spec, annotations),
    )


def _is_isolated(spec: Object, annotations: Mapping[str, str]) -> bool:
    """
    Return whether KAI's isolator is in a pod, or will be.
    """
    wish = annotations.get(KAI_ISOLATE)
    if wish is not None:
        return wish != "false"
    volumes = objects(spec.get("volumes"), "spec.volumes")
    if any(as_text(item.get("name"), "name").startswith(KAI_ISOLATOR) for item in volumes):
        return True
    return any(
        entry.get("name") == CUDA_LIMIT
        for item in objects(spec.get("containers"), "spec.containers")
        for entry in objects(item.get("env"), "env")
    )


def phase_sums(pod: Pod, weights: Mapping[str, int]) -> list[int]:
    """
    Add up the containers of each phase, in the order in which they run; one without a weight
    weighs nothing.
    """
    sums = []
    stays = life = 0
    for container in pod.containers:
        weight = weights.get(container.name, 0)
        if container.kind is ContainerKind.SIDECAR:
            stays += weight
        elif container.kind is ContainerKind.INIT:
            sums.append(stays + weight)
        else:
            life += weight
    return [*sums, stays + life]


def smallest_of_phases(pod: Pod, values: Sequence[T]) -> dict[str, T]:
    """
    Return the smallest value of all phases that a container runs in, by its name; `values` has one
    for each phase, in the order in which they run.
    """
    smallest: dict[str, T] = {}
    earlier = len(values) - 1
    since = values[earlier]
    for container in reversed(pod.containers):
        value = since
        if container.kind is ContainerKind.INIT:
            earlier -= 1
            value = values[earlier]
            since = min(since, value)
        smallest[container.name] = min(value, smallest.get(container.name, value))
    return smallest


def _read_containers(spec: Object) -> tuple[Container, ...]:
    containers = []
    early = spec.get("initContainers")
    if early is not None:
        for position, item in enumerate(objects(early, "spec.initContainers")):
            stays = item.get("restartPolicy") == "Always"
            kind = ContainerKind.SIDECAR if stays else ContainerKind.INIT
            containers.append(_container(item, kind, f"spec.initContainers[{position}]"))
    for position, item in enumerate(objects(spec.get("containers"), "spec.containers")):
        containers.append(_container(item, ContainerKind.REGULAR, f"spec.containers[{position}]"))
    return tuple(containers)


def _container(item: Object, kind: ContainerKind, field: str) -> Container:
    resources = as_object(item.get("resources"), f"{field}.resources")
    limits = as_object(resources.get("limits"), f"{field}.resources.limits") if resources else {}
    return Container(
        as_text(item.get("name"), f"{field}.name"),
        kind,
        {
            resource: value
            for resource, value in limits.items()
            if resource in GPU_RESOURCES or resource.startswith(PREFIXES)
        },
        field,
    )
