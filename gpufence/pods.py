"""What gpufence reads of a pod, wherever the pod comes from."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.dialects import GPU_RESOURCES, PREFIXES
from gpufence.names import (
    CUDA_LIMIT,
    KAI_DRIVER,
    KAI_FRACTION,
    KAI_ISOLATE,
    KAI_ISOLATOR,
    KAI_MEMORY,
    KAI_OF_CONTAINER,
)
from gpufence.shape import Object, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction
    from typing import TypeVar

    from gpufence.devices import Device

    T = TypeVar("T", int, Fraction)


KAI_KEYS = frozenset((KAI_MEMORY, KAI_FRACTION))


EXTENDED = "extended resources"
"""
What the claim is called here that the scheduler makes for extended resources; no pod can say so.
"""
_NONE: frozenset[str] = frozenset()
NOT_READ = "its resource claims (DRA) have not been read"


class ContainerKind(StrEnum):
    """When a container runs: what decides whose memory adds up."""

    REGULAR = "container"
    SIDECAR = "sidecar"  # an init container that stays (restartPolicy Always)
    INIT = "init container"  # runs alone, beside the sidecars before it


class ClaimUse(NamedTuple):
    """A claim that a container uses, as its pod calls it; all of it, or one of its requests."""

    claim: str
    request: str = ""


class PodClaim(NamedTuple):
    """
    A resource claim as its pod calls it: the name of the ResourceClaim, empty while the controller
    has made none of its `template`.
    """

    name: str
    claim: str
    template: str = ""


class Container(NamedTuple):
    """A container; of its resource limits, `gpu` are those that declare something about GPUs."""

    name: str
    kind: ContainerKind
    gpu: Object
    field: str
    claims: tuple[ClaimUse, ...] = ()

    @property
    def regular(self) -> bool:
        return self.kind is ContainerKind.REGULAR

    def uses(self, claim: str, request: str) -> bool:
        """Return whether it names that claim, all of it or just that request."""
        return any(use.claim == claim and use.request in ("", request) for use in self.claims)


class Pod(NamedTuple):
    """
    A pod as far as its GPU memory goes.

    Its phases are the sets of containers that run together: each init container with the sidecars
    that were started before it, and last the pod's life. Nobody lists them, since that takes the
    square of the number of containers: `phase_sums` and `smallest_of_phases` do the sums.

    `isolated` pods see their limit as the card's memory, by the isolator that KAI may have put into
    them.

    What its resource claims (DRA) give it stands elsewhere: `devices` are filled in by whoever has
    read that, `doubt` by whoever could not. `served` are resources for which the scheduler has made
    a claim itself.
    """

    annotations: Mapping[str, str]
    containers: tuple[Container, ...]
    node_name: str
    node_selector: Mapping[str, str]
    affinity: Object
    claims: tuple[PodClaim, ...] = ()
    isolated: bool = False
    served: frozenset[str] = frozenset()
    devices: tuple[Device, ...] = ()
    doubt: str = ""


def read_pod(pod: Object) -> Pod:
    """Read a pod, raising `InvalidError` where it is no pod at all."""
    metadata = as_object(pod.get("metadata"), "metadata")
    spec = as_object(pod.get("spec"), "spec")
    affinity = spec.get("affinity")
    if affinity is not None:
        affinity = as_object(affinity, "spec.affinity").get("nodeAffinity")
    annotations = as_texts(metadata.get("annotations"), "metadata.annotations")
    claims, served = read_claims(pod)
    return Pod(
        annotations=annotations,
        containers=_read_containers(spec, served),
        node_name=as_text(spec.get("nodeName"), "spec.nodeName"),
        node_selector=as_texts(spec.get("nodeSelector"), "spec.nodeSelector"),
        affinity=as_object(affinity, "spec.affinity.nodeAffinity"),
        claims=claims,
        served=frozenset([resource for resource, _, _ in served]) if served else _NONE,
        doubt=NOT_READ if claims else "",
        isolated=_is_isolated(spec, annotations),
    )


def _is_isolated(spec: Object, annotations: Mapping[str, str]) -> bool:
    """
    Return whether KAI's isolator is in a pod or will be, or the driver holds it (NvFractions).
    """
    driven = [key for key in annotations if key.endswith(KAI_DRIVER)]
    if any(key.startswith(KAI_OF_CONTAINER) for key in driven):
        return True
    if KAI_KEYS.isdisjoint(annotations):
        return False
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


def read_claims(pod: Object) -> tuple[tuple[PodClaim, ...], tuple[tuple[str, str, str], ...]]:
    """
    Read a pod's resource claims, and which resource of which container is which request of the
    claim that the scheduler has made for extended resources; `InvalidError` where it is no pod.
    """
    spec, status = as_object(pod.get("spec"), "spec"), as_object(pod.get("status"), "status")
    wanted = spec.get("resourceClaims")
    extended = status.get("extendedResourceClaimStatus")
    if wanted is None and extended is None:
        return (), ()
    field = "status.resourceClaimStatuses"
    made = {
        as_text(item.get("name"), field): as_text(item.get("resourceClaimName"), field)
        for item in objects(status.get("resourceClaimStatuses"), field)
    }
    field = "spec.resourceClaims"
    claims = []
    for item in objects(wanted, field):
        name = as_text(item.get("name"), field)
        claim = as_text(item.get("resourceClaimName"), field) or made.get(name, "")
        claims.append(PodClaim(name, claim, as_text(item.get("resourceClaimTemplateName"), field)))
    field = "status.extendedResourceClaimStatus"
    said = as_object(extended, field)
    claim = as_text(said.get("resourceClaimName"), field)
    if not claim:
        return tuple(claims), ()
    served = tuple(
        (
            as_text(item.get("resourceName"), field),
            as_text(item.get("containerName"), field),
            as_text(item.get("requestName"), field),
        )
        for item in objects(said.get("requestMappings"), field)
    )
    return (*claims, PodClaim(EXTENDED, claim)), served


def _read_containers(
    spec: Object, served: tuple[tuple[str, str, str], ...] = ()
) -> tuple[Container, ...]:
    containers = []
    early = spec.get("initContainers")
    if early is not None:
        for position, item in enumerate(objects(early, "spec.initContainers")):
            stays = item.get("restartPolicy") == "Always"
            kind = ContainerKind.SIDECAR if stays else ContainerKind.INIT
            field = f"spec.initContainers[{position}]"
            containers.append(_container(item, kind, field, served))
    for position, item in enumerate(objects(spec.get("containers"), "spec.containers")):
        field = f"spec.containers[{position}]"
        containers.append(_container(item, ContainerKind.REGULAR, field, served))
    return tuple(containers)


def _container(
    item: Object, kind: ContainerKind, field: str, served: tuple[tuple[str, str, str], ...]
) -> Container:
    name = as_text(item.get("name"), f"{field}.name")
    resources = as_object(item.get("resources"), f"{field}.resources")
    limits = as_object(resources.get("limits"), f"{field}.resources.limits") if resources else {}
    return Container(
        name,
        kind,
        {
            resource: value
            for resource, value in limits.items()
            if resource in GPU_RESOURCES or resource.startswith(PREFIXES)
        },
        field,
        _claims_used(name, resources, field, served) if served or "claims" in resources else (),
    )


def _claims_used(
    name: str, resources: Object, field: str, served: tuple[tuple[str, str, str], ...]
) -> tuple[ClaimUse, ...]:
    named = [
        ClaimUse(as_text(use.get("name"), field), as_text(use.get("request"), field))
        for use in objects(resources.get("claims"), field)
    ]
    return (
        *named,
        *[ClaimUse(EXTENDED, request) for _, owner, request in served if owner == name],
    )


MOST_CHARACTERS: Final = 16 * 1024
"""Several times what a kubelet keeps; the end counts."""

_OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory"  # PyTorch
    r"|CUDA_ERROR_OUT_OF_MEMORY"  # the driver's name, in TensorFlow, JAX, Numba
    r"|cudaErrorMemoryAllocation"  # the runtime's, in RMM, CuPy
    r"|CUDA error: out of memory"
    r"|cudaMalloc failed: out of memory"  # llama.cpp
    r"|CUDA failed with error out of memory"  # CTranslate2
    r"|(?<!java\.lang\.)(?<!ray\.exceptions\.)OutOfMemoryError"  # PyTorch, CuPy
    r"|RESOURCE_EXHAUSTED: (?:Out of memory|OOM|[Ff]ailed to allocate)"  # JAX, TensorFlow
    r"|OOM when allocating [^\n]{0,1000}device:GPU"  # TensorFlow; on its CPUs it says the same
    r"|Allocator \(GPU_\d+_bfc\) ran out of memory"
    r"|Out of memory error on GPU"  # PaddlePaddle
    r"|Out of GPU memory"  # CUDA.jl
    r"|Failed to allocate memory for requested buffer of size \d{1,20}"  # ONNX Runtime
    r"|Available memory of \d{1,20} is smaller than requested bytes of \d{1,20}"  # at its own cap
)


def out_of_memory(message: str) -> str:
    """
    Return the words by which a message says that a card's memory was not enough; empty where none
    does.
    """
    found = _OUT_OF_MEMORY.search(message[-MOST_CHARACTERS:])
    return found[0] if found else ""


MOST_OF_START: Final = 2048
"""Of a message about a container that did not start; the beginning counts."""

_STARTS: Final = frozenset(
    {"StartError", "RunContainerError", "CreateContainerError", "ContainerCannotRun"}
)
_HOOK_FAILED: Final = re.compile(
    r"(?:[A-Za-z ]{1,80}: ){0,12}error running (?:createRuntime )?hook #\d+: "
)
_LIMIT_WORDS: Final = re.compile(r"memory limits|GPU_MEMORY_|nvmlDeviceSetMemoryLimits")
_MOST_REFUSAL: Final = 240


def limits_refused(reason: str, message: str) -> str:
    """
    Return how a container's start ended because NVIDIA's hook could not set the memory limits that
    its variables ask for; empty where it did not.

    What a program leaves as its message, and what a tenant names in a pod, says nothing here: the
    text begins with the runtime's own words, up to the number of the hook.
    """
    text = message[:MOST_OF_START]
    found = _HOOK_FAILED.match(text) if reason in _STARTS else None
    if found is None or not _LIMIT_WORDS.search(text, found.end()):
        return ""
    return text[found.end() :][-_MOST_REFUSAL:]
