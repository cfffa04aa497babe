"""HAMi: `nvidia.com/gpumem` in MiB or `nvidia.com/gpumem-percentage`, capped by its own library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import (
    WHOLE_CARD,
    Amount,
    Claim,
    Declared,
    DialectSpec,
    amount_of,
    percentage,
)
from gpufence.names import HAMI_MEMORY, HAMI_PERCENTAGE, NVIDIA_GPU
from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod


def read(_: Pod, requests: Sequence[GpuRequest], __: Units) -> Declared:
    """
    Read amounts on each card; beside them, `nvidia.com/gpu` is how many cards, or a whole one.
    """
    claims = [
        Claim(item.container.name, _amount(item), item.counts.get(NVIDIA_GPU, 1))
        for item in requests
        if not item.counts.keys().isdisjoint(_COUNTED)
    ]
    return Declared(SPEC.name, tuple(claims), "MiB on each card", library_caps=SPEC.library_caps)


def _amount(request: GpuRequest) -> Amount:
    container, counts = request
    if HAMI_MEMORY in counts:
        return amount_of(container, HAMI_MEMORY, counts[HAMI_MEMORY], MIB)
    if HAMI_PERCENTAGE in counts:
        return percentage(container, HAMI_PERCENTAGE, counts[HAMI_PERCENTAGE])
    return WHOLE_CARD


_COUNTED = (HAMI_MEMORY, HAMI_PERCENTAGE, NVIDIA_GPU)

SPEC = DialectSpec(
    name="hami",
    system="HAMi",
    unit="MiB, or percent, of each card",
    read=read,
    resources=(HAMI_MEMORY, HAMI_PERCENTAGE),
    refines=frozenset({NVIDIA_GPU}),
    advertised_as={HAMI_MEMORY: NVIDIA_GPU, HAMI_PERCENTAGE: NVIDIA_GPU},
    library_caps=True,
    unit_bytes={HAMI_MEMORY: lambda _: MIB},
    percentages=frozenset({HAMI_PERCENTAGE}),
)
