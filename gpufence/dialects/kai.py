"""
KAI: the pod annotations `gpu-memory` (bare MiB) or `gpu-fraction`, for one container; its isolator
shows that container its share as the card's memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import (
    LARGEST_CARD,
    Amount,
    Claim,
    Declared,
    DialectSpec,
)
from gpufence.errors import InvalidError, annotation_problem
from gpufence.names import KAI_CONTAINER, KAI_DEVICES, KAI_FRACTION, KAI_MEMORY
from gpufence.quantity import MIB
from gpufence.shape import whole_number
from gpufence.text import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod

_MOST_DECIMALS = 18


def read(pod: Pod, _: Sequence[GpuRequest], __: Units) -> Declared | None:
    memory, fraction = pod.annotations.get(KAI_MEMORY), pod.annotations.get(KAI_FRACTION)
    if memory is None and fraction is None:
        return None
    if memory is not None and fraction is not None:
        raise InvalidError(
            annotation_problem(
                KAI_MEMORY,
                memory,
                f"stands beside {KAI_FRACTION}, and KAI takes only one of them",
                "remove one of the two annotations",
            )
        )
    amount = _memory(memory) if memory is not None else _fraction(fraction or "")
    basis = "MiB on each card" if memory is not None else "a share of each card"
    claim = Claim(_container(pod), amount, _devices(pod))
    return Declared(SPEC.name, (claim,), basis, library_caps=pod.isolated)


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


def _container(pod: Pod) -> str:
    """
    Return the container KAI gives the share to: the one named, else the first regular one.
    """
    wanted = pod.annotations.get(KAI_CONTAINER)
    regular = [item.name for item in pod.containers if item.regular]
    if wanted is None and regular:
        return regular[0]
    if wanted is not None and wanted in {item.name for item in pod.containers}:
        return wanted
    raise InvalidError(
        annotation_problem(
            KAI_CONTAINER,
            wanted or "",
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
    scheduler="kai-scheduler",
    unit_bytes={KAI_MEMORY: lambda _: MIB},
)
