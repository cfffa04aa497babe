"""Volcano's vGPUs, whose library caps the container and shows it the cap as the card's total."""

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
from gpufence.names import VOLCANO_VGPU_MEMORY, VOLCANO_VGPU_NUMBER, VOLCANO_VGPU_PERCENTAGE
from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod


def read(_: Pod, requests: Sequence[GpuRequest], units: Units) -> Declared:
    claims = [
        Claim(item.container.name, _amount(item, units), item.counts.get(VOLCANO_VGPU_NUMBER, 1))
        for item in requests
        if not item.counts.keys().isdisjoint(SPEC.resources)
    ]
    basis = f"units of {units.volcano_factor} MiB for each vGPU"
    return Declared(SPEC.name, tuple(claims), basis, library_caps=SPEC.library_caps)


def _amount(request: GpuRequest, units: Units) -> Amount:
    container, counts = request
    if VOLCANO_VGPU_MEMORY in counts:
        unit = MIB * units.volcano_factor
        return amount_of(container, VOLCANO_VGPU_MEMORY, counts[VOLCANO_VGPU_MEMORY], unit)
    if VOLCANO_VGPU_PERCENTAGE in counts:
        return percentage(container, VOLCANO_VGPU_PERCENTAGE, counts[VOLCANO_VGPU_PERCENTAGE])
    return WHOLE_CARD


SPEC = DialectSpec(
    name="volcano-vgpu",
    system="Volcano vGPU",
    unit="MiB times the plugin's factor, or percent of a card",
    read=read,
    resources=(VOLCANO_VGPU_MEMORY, VOLCANO_VGPU_PERCENTAGE, VOLCANO_VGPU_NUMBER),
    advertised_as={VOLCANO_VGPU_PERCENTAGE: VOLCANO_VGPU_NUMBER},
    scheduler="volcano",
    library_caps=True,
    unit_bytes={VOLCANO_VGPU_MEMORY: lambda units: units.volcano_factor * MIB},
    percentages=frozenset({VOLCANO_VGPU_PERCENTAGE}),
)
