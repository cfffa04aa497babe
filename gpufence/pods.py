"""
What gpufence reads of a pod, wherever the pod comes from.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gpufence.shape import Object, as_list, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Mapping


class ContainerKind(StrEnum):
    """
    When a container runs: what decides whose memory adds up.
    """

    REGULAR = "container"
    SIDECAR = "sidecar"  # an init container that stays (restartPolicy Always)
    INIT = "init container"  # runs alone, beside the sidecars before it


class Container(NamedTuple):
    name: str
    kind: ContainerKind
    limits: Object
    field: str


class Pod(NamedTuple):
    """
    A pod as far as its GPU memory goes.

    `phases` are the sets of containers that run together: the pod's life first, then each init
    container with the sidecars that were started before it.
    """

    annotations: Mapping[str, str]
    containers: tuple[Container, ...]
    phases: tuple[tuple[Container, ...], ...]
    node_name: str
    node_selector: Mapping[str, str]
    affinity: Object
    has_resource_claims: bool


def read_pod(pod: Object) -> Pod:
    """
    Read a pod, raising `InvalidError` where it is no pod at all.
    """
    metadata = as_object(pod.get("metadata"), "metadata")
    spec = as_object(pod.get("spec"), "spec")
    affinity = as_object(spec.get("affinity"), "spec.affinity")
    containers = _read_containers(spec)
    return Pod(
        annotations=as_texts(metadata.get("annotations"), "metadata.annotations"),
        containers=containers,
        phases=phases_of(containers),
        node_name=as_text(spec.get("nodeName"), "spec.nodeName"),
        node_selector=as_texts(spec.get("nodeSelector"), "spec.nodeSelector"),
        affinity=as_object(affinity.get("nodeAffinity"), "spec.affinity.nodeAffinity"),
        has_resource_claims=bool(as_list(spec.get("resourceClaims"), "spec.resourceClaims")),
    )


def phases_of(containers: tuple[Container, ...]) -> tuple[tuple[Container, ...], ...]:
    """
    Return the sets of containers that run together.
    """
    if all(item.kind is ContainerKind.REGULAR for item in containers):
        return (containers,)
    sidecars: list[Container] = []
    regular: list[Container] = []
    starts: list[tuple[Container, ...]] = []
    for container in containers:
        if container.kind is ContainerKind.SIDECAR:
            sidecars.append(container)
        elif container.kind is ContainerKind.INIT:
            starts.append((*sidecars, container))
        else:
            regular.append(container)
    return ((*sidecars, *regular), *starts)


def _read_containers(spec: Object) -> tuple[Container, ...]:
    containers = []
    for position, item in enumerate(objects(spec.get("initContainers"), "spec.initContainers")):
        stays = item.get("restartPolicy") == "Always"
        kind = ContainerKind.SIDECAR if stays else ContainerKind.INIT
        containers.append(_container(item, kind, f"spec.initContainers[{position}]"))
    for position, item in enumerate(objects(spec.get("containers"), "spec.containers")):
        containers.append(_container(item, ContainerKind.REGULAR, f"spec.containers[{position}]"))
    return tuple(containers)


def _container(item: Object, kind: ContainerKind, field: str) -> Container:
    resources = as_object(item.get("resources"), f"{field}.resources")
    return Container(
        as_text(item.get("name"), f"{field}.name"),
        kind,
        as_object(resources.get("limits"), f"{field}.resources.limits") if resources else resources,
        field,
    )
