"""
What gpufence reads of a pod, wherever the pod comes from.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gpufence.shape import Object, as_list, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Kind(StrEnum):
    """
    When a container runs: what decides whose memory adds up.
    """

    REGULAR = "container"
    SIDECAR = "sidecar"  # an init container that stays (restartPolicy Always)
    INIT = "init container"  # runs alone, beside the sidecars before it


class Container(NamedTuple):
    name: str
    kind: Kind
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
    containers = (*_init_containers(spec), *_containers(spec))
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
    sidecars: list[Container] = []
    starts: list[tuple[Container, ...]] = []
    for container in containers:
        if container.kind is Kind.SIDECAR:
            sidecars.append(container)
        elif container.kind is Kind.INIT:
            starts.append((*sidecars, container))
    regular = [item for item in containers if item.kind is Kind.REGULAR]
    return ((*sidecars, *regular), *starts)


def _init_containers(spec: Object) -> Iterator[Container]:
    for position, item in enumerate(objects(spec.get("initContainers"), "spec.initContainers")):
        stays = item.get("restartPolicy") == "Always"
        kind = Kind.SIDECAR if stays else Kind.INIT
        yield _container(item, kind, f"spec.initContainers[{position}]")


def _containers(spec: Object) -> Iterator[Container]:
    for position, item in enumerate(objects(spec.get("containers"), "spec.containers")):
        yield _container(item, Kind.REGULAR, f"spec.containers[{position}]")


def _container(item: Object, kind: Kind, field: str) -> Container:
    resources = as_object(item.get("resources"), f"{field}.resources")
    return Container(
        name=as_text(item.get("name"), f"{field}.name"),
        kind=kind,
        limits=as_object(resources.get("limits"), f"{field}.resources.limits"),
        field=field,
    )
