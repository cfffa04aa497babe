"""
What a pod is held to when it runs, whatever its words are worth.

A limit that its own words make unreadable would be a fence that its owner takes down: so the
smallest amount that can be read of them counts, and one that somebody wrote before one that only
follows from its node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence import names
from gpufence.dialects import SPECS, GpuRequest, Undeclared, Unreadable, spoken
from gpufence.dialects.annotation import SPEC as BY_ANNOTATION
from gpufence.errors import InvalidError
from gpufence.limits import Limits, limits_on, read_limits
from gpufence.quantity import read_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpufence.annotations import NamespaceOptions, PodOptions
    from gpufence.candidates import CandidateCard
    from gpufence.dialects import Declared, DialectSpec, Units
    from gpufence.pods import Container, Pod

UNASKED: Final = "undeclared"
"""In place of a dialect: the pod asks for no GPU, and its namespace says what it may hold."""

_BASIS = "the smallest amount that can be read"


def held_limits(
    pod: Pod, options: PodOptions, namespace: NamespaceOptions, card: CandidateCard
) -> Limits | Undeclared | Unreadable:
    """
    Work out what a pod may hold on a card of its node; what is unreadable never makes it more.

    A pod that asks for no GPU may hold what its namespace says, if that evicts such pods.
    """
    found = _said(pod, options, namespace, card)
    certain = not pod.doubt and (isinstance(found, Undeclared) or _own_words(found))
    return _unasked(namespace) if namespace.evicts_undeclared and certain else found


def _own_words(found: Limits | Undeclared | Unreadable) -> bool:
    return isinstance(found, Unreadable) and found.own_words


def _unasked(namespace: NamespaceOptions) -> Limits:
    """Return the ceiling of the namespace, or next to nothing: zero would read as no limit."""
    ceiling = namespace.max_memory_bytes
    return Limits(
        dialect=UNASKED,
        basis=f"it asks for no GPU, and its namespace says {names.UNDECLARED_USE}: evict",
        limit_bytes=ceiling or 1,
        parts=(),
        enforced=True,
        library_caps=False,
    )


def _said(
    pod: Pod, options: PodOptions, namespace: NamespaceOptions, card: CandidateCard
) -> Limits | Undeclared | Unreadable:
    found = read_limits(pod, options, namespace, card)
    if not isinstance(found, Unreadable):
        return found
    silent = options._replace(memory_bytes=None, memory_of={}, burst=None, unreadable=())
    said = [
        limits_on(each, pod, silent, namespace, card.memory_bytes)
        for each in _readable(pod, card.units)
    ]
    known = [each for each in (*said, _granted(options, namespace)) if isinstance(each, Limits)]
    smallest = min(known, key=_rank, default=None)
    if smallest is None:
        return found
    return smallest._replace(basis=f"{smallest.basis}, {_BASIS}", notes=(found.problem,))


def _granted(options: PodOptions, namespace: NamespaceOptions) -> Limits | None:
    """
    Return the amount that the pod names itself, however it is to be split among its containers.
    """
    if not options.grants_memory:
        return None
    amounts = [sum(options.memory_of.values()), options.memory_bytes, namespace.max_memory_bytes]
    return Limits(
        dialect=BY_ANNOTATION.name,
        basis="the pod's own annotation",
        limit_bytes=min(amount for amount in amounts if amount),
        parts=(),
        enforced=True,
        library_caps=False,
    )


def _rank(limits: Limits) -> tuple[bool, bool, int]:
    """Put first what counts most: enforced, known, and small."""
    return not limits.enforced, limits.limit_bytes is None, limits.limit_bytes or 0


def _readable(pod: Pod, units: Units) -> list[Declared]:
    """
    Return what a pod declares to each system; where that contradicts itself, what each of its words
    says alone.
    """
    pod = pod._replace(node_selector={})  # it has its node, whatever it wished for
    requests = [
        GpuRequest(item, counts) for item in pod.containers if (counts := dict(_counts(item)))
    ]
    return [
        declared
        for place in spoken(pod, requests)
        for declared in _of_one_system(SPECS[place], pod, requests, units)
    ]


def _counts(container: Container) -> Iterator[tuple[str, int]]:
    """Yield the resources whose amounts are whole numbers."""
    for resource, value in container.gpu.items():
        try:
            count = read_count(value, resource)
        except InvalidError:
            continue
        if count:
            yield resource, count


def _of_one_system(
    spec: DialectSpec, pod: Pod, requests: Sequence[GpuRequest], units: Units
) -> list[Declared]:
    """Read all that a system is told, else what of it is sound, else each sound word alone."""
    whole = _attempt(spec, pod, requests, units)
    if whole is not None:
        return whole
    sound: list[GpuRequest] = []
    alone: dict[str, list[GpuRequest]] = {}
    for container, counts in requests:
        kept = {}
        for resource, count in counts.items():
            word = GpuRequest(container, {resource: count})
            if not spec.is_asked_by(resource):
                kept[resource] = count
            elif _attempt(spec, _saying(pod, {}), [word], units) is not None:
                kept[resource] = count
                alone.setdefault(resource, []).append(word)
        sound.append(GpuRequest(container, kept))
    keys = [{key: text} for key, text in pod.annotations.items() if spec.is_said_by(key)]
    keys = [key for key in keys if _attempt(spec, _saying(pod, key), [], units) is not None]
    if not alone and not keys:
        return []
    together = _saying(pod, {key: text for each in keys for key, text in each.items()})
    whole = _attempt(spec, together, sound, units)
    if whole is not None:
        return whole
    words = [_attempt(spec, _saying(pod, {}), each, units) for each in alone.values()]
    words += [_attempt(spec, _saying(pod, each), [], units) for each in keys]
    return [declared for word in words for declared in word or ()]


def _attempt(
    spec: DialectSpec, pod: Pod, requests: Sequence[GpuRequest], units: Units
) -> list[Declared] | None:
    """Return what a system reads, which may be nothing; None where it cannot."""
    try:
        declared = spec.read(pod, requests, units)
    except InvalidError:
        return None
    return [] if declared is None else [declared]


def _saying(pod: Pod, annotations: Mapping[str, str]) -> Pod:
    return pod._replace(annotations=annotations)
