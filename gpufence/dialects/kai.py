"""
KAI: the pod annotations `gpu-memory` (bare MiB) or `gpu-fraction`, for one container.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpufence.dialects.model import (
    LARGEST_CARD,
    Amount,
    Claim,
    Declared,
    Dialect,
    NeverRunsError,
    Units,
)
from gpufence.errors import InvalidError, annotation_problem
from gpufence.names import KAI_CONTAINER, KAI_DEVICES, KAI_FRACTION, KAI_MEMORY
from gpufence.pods import Kind
from gpufence.quantity import MIB
from gpufence.shape import whole_number

if TYPE_CHECKING:
    from gpufence.pods import Pod

_FRACTION = re.compile(r"0?\.([0-9]{1,18})")
_FIELD = "metadata.annotations[{}]"


def read(pod: Pod, _: Units) -> Declared | None:
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
    return Declared(Dialect.KAI, (Claim(_container(pod), amount, _devices(pod)),), basis)


def _memory(text: str) -> Amount:
    try:
        mebibytes = whole_number(text, KAI_MEMORY, most=LARGEST_CARD // MIB)
    except InvalidError as error:
        raise NeverRunsError(
            annotation_problem(
                KAI_MEMORY,
                text,
                "is no usable number of bare MiB, and KAI ignores such without a word",
                'write the MiB alone, such as "4096"',
            )
        ) from error
    return Amount(mebibytes * MIB)


def _fraction(text: str) -> Amount:
    match = _FRACTION.fullmatch(text)
    if match is None or not int(match[1]):
        raise NeverRunsError(
            annotation_problem(
                KAI_FRACTION,
                text,
                "is not a share between 0 and 1",
                'write a decimal such as "0.25"',
            )
        )
    return Amount(share=(int(match[1]), 10 ** len(match[1])))


def _devices(pod: Pod) -> int:
    text = pod.annotations.get(KAI_DEVICES, "1")
    return whole_number(text, _FIELD.format(KAI_DEVICES), most=1024)


def _container(pod: Pod) -> str:
    """
    Return the container KAI gives the share to: the one named, else the first regular one.
    """
    wanted = pod.annotations.get(KAI_CONTAINER)
    regular = [item.name for item in pod.containers if item.kind is Kind.REGULAR]
    if wanted is None and regular:
        return regular[0]
    if wanted is not None and wanted in {item.name for item in pod.containers}:
        return wanted
    raise InvalidError(
        annotation_problem(
            KAI_CONTAINER,
            wanted or "",
            "names no container of the pod",
            f"write one of {', '.join(item.name for item in pod.containers)}",
        )
    )
