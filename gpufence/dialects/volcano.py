"""Volcano's GPU share: counted memory (`volcano.sh/gpu-memory`), or whole cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import (
    WHOLE_CARD,
    Claim,
    Declared,
    DialectSpec,
    Sum,
    amount_of,
    is_near,
    two_ways,
    way_of,
)
from gpufence.errors import InvalidError, Problem
from gpufence.names import VOLCANO_BOOKKEEPING, VOLCANO_CARD_INDEX, VOLCANO_MEMORY, VOLCANO_NUMBER
from gpufence.quantity import MIB
from gpufence.text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.cards import Card
    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod


def read(_: Pod, requests: Sequence[GpuRequest], units: Units) -> Declared:
    """
    Read shares of one card, or whole cards: both in one pod would be two ways to declare memory.
    """
    memory = [item for item in requests if VOLCANO_MEMORY in item.counts]
    number = [item for item in requests if VOLCANO_NUMBER in item.counts]
    if memory and number:
        ways = [_shares(memory, units), _whole_cards(number)]
        raise InvalidError(two_ways([way_of(each) for each in ways]))
    return _shares(memory, units) if memory else _whole_cards(number)


def factor_of(figures: Mapping[str, int], cards: tuple[Card, ...]) -> int | None:
    """
    Return the device plugin's factor that a node's figures and its cards tell; None where nothing
    fits, or nothing is offered.
    """
    units = figures.get(VOLCANO_MEMORY, 0)
    sizes = [card.memory_bytes // MIB for card in cards if card.mig is None]
    if not sizes or units < len(sizes):
        return None
    factor = max(round(sizes[0] * len(sizes) / units), 1)
    return factor if is_near(units, sizes[0] // factor * len(sizes)) else None


def _shares(requests: Sequence[GpuRequest], units: Units) -> Declared:
    """Nothing caps counted memory; one card for each pod."""
    unit = MIB * units.volcano_factor
    claims = [
        Claim(container.name, amount_of(container, VOLCANO_MEMORY, counts[VOLCANO_MEMORY], unit))
        for container, counts in requests
    ]
    notes: tuple[Problem, ...] = ()
    if len(claims) > 1:
        notes = (
            Problem(
                VOLCANO_MEMORY,
                listed([claim.container for claim in claims]),
                "is asked for by several containers, of which Volcano starts only one",
                "ask for it in one container",
            ),
        )
    return Declared(
        dialect=SPEC.name,
        claims=tuple(claims),
        basis=f"units of {units.volcano_factor} MiB",
        sum=Sum.LARGEST_INIT,
        notes=notes,
    )


def _whole_cards(requests: Sequence[GpuRequest]) -> Declared:
    """Nobody shares a whole card, so the limit is the card."""
    claims = [
        Claim(container.name, WHOLE_CARD, counts[VOLCANO_NUMBER]) for container, counts in requests
    ]
    return Declared(SPEC.name, tuple(claims), "whole cards", implied=True)


SPEC = DialectSpec(
    name="volcano",
    system="Volcano GPU share",
    unit="MiB times the plugin's factor, or whole cards",
    read=read,
    resources=(VOLCANO_MEMORY, VOLCANO_NUMBER),
    scheduler="volcano",
    bookkeeping=VOLCANO_BOOKKEEPING,
    card_key=VOLCANO_CARD_INDEX,
    unit_bytes={VOLCANO_MEMORY: lambda units: units.volcano_factor * MIB},
)
