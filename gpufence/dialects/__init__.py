"""
How each sharing system declares memory: a pod and its node's units in, a declaration out.

One module for each system, which ends in its `SPEC`. A new one is such a module, its keys and its
place among `DIALECTS` in names.py, and rows in tests/data/pods.json: filters, match conditions,
settings and tables follow from the specs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from gpufence import names
from gpufence.dialects.spec import (
    Amount,
    Claim,
    Declared,
    DialectSpec,
    GpuRequest,
    Sum,
    Undeclared,
    Units,
    UnknownUnitError,
    Unreadable,
    two_ways,
    way_of,
)
from gpufence.errors import InvalidError
from gpufence.quantity import read_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpufence.pods import Pod

__all__ = [
    "ADVERTISED_AS",
    "ANNOTATION_KEYS",
    "BOOKKEEPING_KEYS",
    "CARD_KEYS",
    "CONTAINER_KEYS",
    "GPU_RESOURCES",
    "NODE_RESOURCES",
    "PREFIXES",
    "SPECS",
    "UNLISTED",
    "Amount",
    "Claim",
    "Declared",
    "DialectSpec",
    "GpuRequest",
    "Sum",
    "Undeclared",
    "Units",
    "Unreadable",
    "bookkeeping",
    "concerns_gpufence",
    "declares",
    "gpu_requests",
    "keys_of_container",
    "read_declaration",
    "spoken",
]

SPECS: Final[tuple[DialectSpec, ...]] = tuple(
    import_module(f"{__name__}.{module}").SPEC for module in names.DIALECTS
)
"""All dialects, in the order in which their declarations are read and listed."""

GPU_RESOURCES: Final = {
    resource: place for place, spec in enumerate(SPECS) for resource in spec.resources
}
"""The resources that declare something about a pod's GPUs, and whose of the dialects each is."""

NODE_RESOURCES: Final = frozenset(
    (*GPU_RESOURCES, *(figure for spec in SPECS for figure in spec.node_figures))
)
"""What tells about GPUs in a node's figures."""

PREFIXES: Final = tuple(spec.prefix for spec in SPECS if spec.prefix)
ANNOTATION_KEYS: Final = {
    key: place for place, spec in enumerate(SPECS) for key in spec.annotation_keys
}
CONTAINER_KEYS: Final = tuple(
    (place, *spec.container_keys) for place, spec in enumerate(SPECS) if spec.container_keys[0]
)
"""The keys of containers that declare something: whose, how they begin, and how they end."""

BOOKKEEPING_KEYS: Final = frozenset(key for spec in SPECS for key in spec.bookkeeping)
CARD_KEYS: Final = tuple(spec.card_key for spec in SPECS if spec.card_key)
UNLISTED: Final = frozenset(
    resource for spec in SPECS if spec.by_claims for resource in spec.resources
)
"""Those of GPU_RESOURCES that no node lists."""

ADVERTISED_AS: Final = {
    resource: node for spec in SPECS for resource, node in spec.advertised_as.items()
}

_REFINED = tuple(
    frozenset(
        other for other, spec in enumerate(SPECS) if not each.refines.isdisjoint(spec.resources)
    )
    for each in SPECS
)
_BY_CLAIMS = next(place for place, spec in enumerate(SPECS) if spec.by_claims)
_OWN_PREFIXES = (names.PREFIX, names.ENV_PREFIX)
_BEGINNINGS = tuple(beginning for _, beginning, _ in CONTAINER_KEYS)


def declares(key: str) -> bool:
    """Return whether an annotation declares something about a pod's GPU memory."""
    return key in ANNOTATION_KEYS or (
        key.startswith(_BEGINNINGS)
        and any(
            key.startswith(beginning) and key.endswith(ends)
            for _, beginning, ends in CONTAINER_KEYS
        )
    )


def keys_of_container(name: str) -> list[str]:
    """Return the annotations that mean something about one container."""
    ends = [
        f"{spec.container_keys[0]}{name}{end}"
        for spec in SPECS
        for end in (*spec.container_keys[1], *spec.container_bookkeeping)
    ]
    return [f"{names.MEMORY_OF_CONTAINER}{name}", *ends]


def bookkeeping(keys: Iterable[str]) -> list[str]:
    """Return the annotations that only schedulers and device plugins may write: of thousands."""
    return [
        key
        for key in keys
        if key in BOOKKEEPING_KEYS or (key.startswith(_BEGINNINGS) and _counts_container(key))
    ]


def _counts_container(key: str) -> bool:
    return any(
        key.startswith(beginning) and key.endswith(SPECS[place].container_bookkeeping)
        for place, beginning, _ in CONTAINER_KEYS
    )


def concerns_gpufence(annotations: Iterable[str]) -> bool:
    """Return whether any annotation's key is one for which the API server calls the webhook."""
    if not ANNOTATION_KEYS.keys().isdisjoint(annotations):
        return True
    suspects = [key for key in annotations if key.startswith((*_OWN_PREFIXES, *_BEGINNINGS))]
    return any(key.startswith(_OWN_PREFIXES) or declares(key) for key in suspects)


def gpu_requests(pod: Pod) -> list[GpuRequest]:
    """
    Return each container that asks for GPU resources, with what it asks for.

    Raises:
        InvalidError: an amount is no whole number.
    """
    requests = []
    for container in pod.containers:
        counts = {}
        for resource, value in container.gpu.items():
            count = read_count(value, f"{container.field}.resources.limits[{resource}]")
            if count and resource not in pod.served:
                counts[resource] = count
        if counts:
            requests.append(GpuRequest(container, counts))
    return requests


def read_declaration(pod: Pod, units: Units) -> Declared | Undeclared | Unreadable:
    """
    Read what a pod declares about GPU memory.

    Two systems in one pod are unreadable: each keeps its own bookkeeping, and no limit fits both.
    """
    found: list[Declared | Unreadable] = []
    try:
        requests = gpu_requests(pod)
        for place in spoken(pod, requests):
            spec = SPECS[place]
            try:
                declared = spec.read(pod, requests, units)
            except UnknownUnitError as error:
                found.append(Unreadable(error.problem, own_words=False))
            else:
                found += [] if declared is None else [declared]
    except InvalidError as error:
        return Unreadable(error.problem)
    if len(found) > 1:
        return Unreadable(two_ways([_way(each) for each in found]))
    if found:
        return found[0]
    if pod.claims:
        unused = "no container uses what its resource claims give it" if pod.devices else ""
        unknown = "its resource claims ask for no GPU that gpufence knows"
        return Undeclared(pod.doubt or unused or unknown)
    return Undeclared("no container asks for GPU memory in a way gpufence knows")


def spoken(pod: Pod, requests: Iterable[GpuRequest]) -> list[int]:
    """
    Return the places of the dialects that a pod speaks, but of those that another one refines.
    """
    places = {
        GPU_RESOURCES[resource] if resource in GPU_RESOURCES else _place_of(resource)
        for _, counts in requests
        for resource in counts
    }
    for key in ANNOTATION_KEYS.keys() & pod.annotations.keys():
        places.add(ANNOTATION_KEYS[key])
    if pod.devices:
        places.add(_BY_CLAIMS)
    if not places and pod.isolated:
        return [place for place, *_ in CONTAINER_KEYS if _is_spoken(SPECS[place], pod)]
    if len(places) == 1:  # as nearly always
        return list(places)
    refined = {other for place in places for other in _REFINED[place]}
    return sorted(places - refined)


def _is_spoken(spec: DialectSpec, pod: Pod) -> bool:
    return any(spec.is_said_by(key) for key in pod.annotations)


def _way(found: Declared | Unreadable) -> str:
    """Name one of several ways to declare memory, even one whose unit is not known."""
    return way_of(found) if isinstance(found, Declared) else found.problem.field


def _place_of(resource: str) -> int:
    """Return the place of the dialect that knows a resource by the beginning of its name."""
    return next(
        place
        for place, spec in enumerate(SPECS)
        if spec.prefix and resource.startswith(spec.prefix)
    )
