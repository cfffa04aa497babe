"""
HAMi: `nvidia.com/gpumem` in MiB or `nvidia.com/gpumem-percentage`, capped by its own library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.model import (
    WHOLE_CARD,
    Amount,
    Claim,
    Declared,
    Dialect,
    Units,
    amount_of,
    percentage,
    requested,
)
from gpufence.names import HAMI_MEMORY, HAMI_PERCENTAGE, NVIDIA_GPU
from gpufence.quantity import MIB

if TYPE_CHECKING:
    from gpufence.pods import Container, Pod


MEMORY = (HAMI_MEMORY, HAMI_PERCENTAGE)


def speaks(pod: Pod) -> bool:
    """
    Tell whether any container asks for HAMi's memory, which gives `nvidia.com/gpu` its meaning.
    """
    return any(True for _ in requested(pod, *MEMORY))


def read(pod: Pod, _: Units) -> Declared | None:
    if not speaks(pod):
        return None
    claims = tuple(
        Claim(item.name, _amount(item, count), count.get(NVIDIA_GPU, 1))
        for item, count in requested(pod, *MEMORY, NVIDIA_GPU)
    )
    return Declared(Dialect.HAMI, claims, "MiB on each card", library_caps=True)


def _amount(container: Container, count: dict[str, int]) -> Amount:
    if HAMI_MEMORY in count:
        return amount_of(container, HAMI_MEMORY, count[HAMI_MEMORY], MIB)
    if HAMI_PERCENTAGE in count:
        return percentage(container, HAMI_PERCENTAGE, count[HAMI_PERCENTAGE])
    return WHOLE_CARD
