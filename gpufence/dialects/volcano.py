"""
Volcano: counted memory (`volcano.sh/gpu-memory`) and capped vGPUs (`volcano.sh/vgpu-memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.model import (
    WHOLE_CARD,
    Amount,
    Claim,
    Declared,
    Dialect,
    Sum,
    Units,
    amount_of,
    percentage,
    requested,
)
from gpufence.errors import Problem
from gpufence.names import (
    VOLCANO_MEMORY,
    VOLCANO_NUMBER,
    VOLCANO_VGPU_MEMORY,
    VOLCANO_VGPU_NUMBER,
    VOLCANO_VGPU_PERCENTAGE,
)
from gpufence.quantity import MIB

if TYPE_CHECKING:
    from gpufence.pods import Container, Pod


VGPU = (VOLCANO_VGPU_MEMORY, VOLCANO_VGPU_PERCENTAGE, VOLCANO_VGPU_NUMBER)


def read_memory(pod: Pod, units: Units) -> Declared | None:
    """
    Read counted memory: nothing caps it, one card for each pod.
    """
    unit = MIB * units.volcano_factor
    found = list(requested(pod, VOLCANO_MEMORY))
    if not found:
        return None
    claims = tuple(
        Claim(item.name, amount_of(item, VOLCANO_MEMORY, count[VOLCANO_MEMORY], unit))
        for item, count in found
    )
    notes: tuple[Problem, ...] = ()
    if len(claims) > 1:
        notes = (
            Problem(
                VOLCANO_MEMORY,
                ", ".join(claim.container for claim in claims),
                "is asked for by several containers, of which Volcano starts only one",
                "ask for it in one container",
            ),
        )
    return Declared(
        dialect=Dialect.VOLCANO,
        claims=claims,
        basis=f"units of {units.volcano_factor} MiB",
        sum=Sum.LARGEST_INIT,
        notes=notes,
    )


def read_number(pod: Pod, _: Units) -> Declared | None:
    """
    Read whole cards: nobody shares them, so the limit is the card.
    """
    claims = tuple(
        Claim(item.name, WHOLE_CARD, count[VOLCANO_NUMBER])
        for item, count in requested(pod, VOLCANO_NUMBER)
    )
    if not claims:
        return None
    return Declared(Dialect.VOLCANO, claims, "whole cards", implied=True)


def read_vgpu(pod: Pod, units: Units) -> Declared | None:
    """
    Read vGPUs, whose library caps the container and shows it the cap as the card's total.
    """
    claims = tuple(
        Claim(item.name, _vgpu_amount(item, count, units), count.get(VOLCANO_VGPU_NUMBER, 1))
        for item, count in requested(pod, *VGPU)
    )
    if not claims:
        return None
    basis = f"units of {units.volcano_factor} MiB for each vGPU"
    return Declared(Dialect.VOLCANO_VGPU, claims, basis, library_caps=True)


def _vgpu_amount(container: Container, count: dict[str, int], units: Units) -> Amount:
    if VOLCANO_VGPU_MEMORY in count:
        unit = MIB * units.volcano_factor
        return amount_of(container, VOLCANO_VGPU_MEMORY, count[VOLCANO_VGPU_MEMORY], unit)
    if VOLCANO_VGPU_PERCENTAGE in count:
        return percentage(container, VOLCANO_VGPU_PERCENTAGE, count[VOLCANO_VGPU_PERCENTAGE])
    return WHOLE_CARD
