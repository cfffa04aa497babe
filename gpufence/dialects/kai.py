"""
KAI: the pod annotations `gpu-memory` (bare MiB) or `gpu-fraction`, for one container; its isolator
shows that container its share as the card's memory, and so does the driver where it holds pods
(NvFractions): by a request, which KAI counts, and a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence.dialects.spec import (
    LARGEST_CARD,
    Amount,
    Claim,
    Declared,
    DialectSpec,
)
from gpufence.errors import InvalidError, annotation_problem
from gpufence.names import (
    KAI_CONTAINER,
    KAI_DEVICES,
    KAI_DRIVER,
    KAI_FRACTION,
    KAI_GIVEN,
    KAI_LIMIT,
    KAI_MEMORY,
    KAI_OF_CONTAINER,
    KAI_REQUEST,
)
from gpufence.quantity import MIB, read_bytes
from gpufence.shape import whole_number
from gpufence.text import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod

_MOST_DECIMALS = 18
_MEMORY = ".gpu-memory."  # between a container's name and what is said of it


class _Driven(NamedTuple):
    """
    What a container says to those who let the driver hold it (NvFractions), in bytes; `given`:
    KAI's binder has given it its cards in that mode.
    """

    container: str
    request: int | None
    limit: int | None
    given: bool


def read(pod: Pod, _: Sequence[GpuRequest], __: Units) -> Declared | None:
    """
    Read what KAI counts, and how far above that the driver lets the pod go: no further than that by
    the pod's own word, and up to the limit that KAI's binder has seen.
    """
    counted, driven = _counted(pod), _driven(pod) if pod.isolated else None
    if driven is not None and driven.request is not None:
        counted = _smaller(counted, driven.request)
    if counted is None and (driven is None or driven.limit is None):
        return None
    container = _container(pod, "" if driven is None else driven.container)
    amount, promised = counted or Amount(), None
    if driven is not None and driven.limit is not None:
        promised = counted if driven.given else None
        amount = Amount(driven.limit) if driven.given else _smaller(counted, driven.limit)
    claim = Claim(container, amount, _devices(pod))
    return Declared(SPEC.name, (claim,), _basis(pod), library_caps=pod.isolated, promised=promised)


def _basis(pod: Pod) -> str:
    if KAI_MEMORY in pod.annotations:
        return "MiB on each card"
    return "a share of each card" if KAI_FRACTION in pod.annotations else "an amount on each card"


def _smaller(counted: Amount | None, most: int) -> Amount:
    """Return an amount that is at most so many bytes."""
    if counted is None:
        return Amount(most)
    return counted._replace(bytes=min(counted.bytes or most, most))


def _counted(pod: Pod) -> Amount | None:
    memory, fraction = pod.annotations.get(KAI_MEMORY), pod.annotations.get(KAI_FRACTION)
    if memory is not None and fraction is not None:
        raise InvalidError(
            annotation_problem(
                KAI_MEMORY,
                memory,
                f"stands beside {KAI_FRACTION}, and KAI takes only one of them",
                "remove one of the two annotations",
            )
        )
    if memory is not None:
        return _memory(memory)
    return None if fraction is None else _fraction(fraction)


def _driven(pod: Pod) -> _Driven | None:
    """Read the keys of the one container that has any; KAI takes no more than one."""
    said = {
        key: key.removeprefix(KAI_OF_CONTAINER).rpartition(_MEMORY)[0]
        for key in pod.annotations
        if SPEC.is_said_by(key) and key not in SPEC.annotation_keys
    }
    if not said:
        return None
    key, container = next(iter(said.items()))
    if set(said.values()) != {container}:
        raise InvalidError(
            annotation_problem(
                key,
                pod.annotations[key],
                "is one of several containers' keys, and KAI takes those of one only",
                "keep the keys of one container",
            )
        )
    if container not in {item.name for item in pod.containers}:
        raise _no_container(key, pod.annotations[key], pod)
    start = f"{KAI_OF_CONTAINER}{container}"
    request, limit = [_amount(pod, f"{start}{end}") for end in (KAI_REQUEST, KAI_LIMIT)]
    if request is not None and limit is not None and request > limit:
        raise InvalidError(
            annotation_problem(
                f"{start}{KAI_REQUEST}",
                pod.annotations[f"{start}{KAI_REQUEST}"],
                f"is above {start}{KAI_LIMIT}, and KAI refuses such",
                "lower the request, or raise the limit",
            )
        )
    return _Driven(container, request, limit, given=f"{start}{KAI_GIVEN}" in pod.annotations)


def _amount(pod: Pod, key: str) -> int | None:
    if key not in pod.annotations:
        return None
    amount = read_bytes(pod.annotations[key], f"metadata.annotations[{key}]")
    if 0 < amount <= LARGEST_CARD:
        return amount
    raise InvalidError(
        annotation_problem(
            key,
            pod.annotations[key],
            "is no memory of a card",
            'write an amount such as "4Gi"',
        )
    )


def _memory(text: str) -> Amount:
    try:
        mebibytes = whole_number(text, KAI_MEMORY, most=LARGEST_CARD // MIB)
    except InvalidError as error:
        raise InvalidError(
            annotation_problem(
                KAI_MEMORY,
                text,
                "is no usable number of bare MiB, and KAI ignores such without a word",
                'write the MiB alone, such as "4096"',
            )
        ) from error
    return Amount(mebibytes * MIB)


def _fraction(text: str) -> Amount:
    whole, dot, decimals = text.partition(".")
    plain = decimals.isascii() and decimals.isdigit() and len(decimals) <= _MOST_DECIMALS
    if whole not in ("", "0") or not dot or not plain or not int(decimals):
        raise InvalidError(
            annotation_problem(
                KAI_FRACTION,
                text,
                "is not a share between 0 and 1",
                'write a decimal such as "0.25"',
            )
        )
    return Amount(share=(int(decimals), 10 ** len(decimals)))


def _devices(pod: Pod) -> int:
    text = pod.annotations.get(KAI_DEVICES, "1")
    return whole_number(text, f"metadata.annotations[{KAI_DEVICES}]", most=1024)


def _container(pod: Pod, driven: str) -> str:
    """
    Return the container KAI gives the share to: the one named, or whose keys say so, else the first
    regular one.
    """
    wanted = pod.annotations.get(KAI_CONTAINER)
    regular = [item.name for item in pod.containers if item.regular]
    if wanted is None and (driven or regular):
        return driven or regular[0]
    if wanted is None or wanted not in {item.name for item in pod.containers}:
        raise _no_container(KAI_CONTAINER, wanted or "", pod)
    if driven in ("", wanted):
        return wanted
    raise InvalidError(
        annotation_problem(
            KAI_CONTAINER,
            wanted,
            f"is not {driven}, whose own keys say what it gets",
            f"write {driven}, or remove it",
        )
    )


def _no_container(key: str, text: str, pod: Pod) -> InvalidError:
    return InvalidError(
        annotation_problem(
            key,
            text,
            "names no container of the pod",
            f"write one of {listed([item.name for item in pod.containers])}",
        )
    )


SPEC = DialectSpec(
    name="kai",
    system="KAI",
    unit="MiB, or a share, of each card",
    read=read,
    annotation_keys=(KAI_MEMORY, KAI_FRACTION, KAI_DEVICES, KAI_CONTAINER),
    container_keys=(KAI_OF_CONTAINER, KAI_DRIVER),
    container_bookkeeping=(KAI_GIVEN,),
    scheduler="kai-scheduler",
    unit_bytes={KAI_MEMORY: lambda _: MIB},
)
