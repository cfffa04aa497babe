"""
PURE. What the numbers on this node's pods mean: its own figures beside the cards NVML sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.cards import NodeCards, write_cards
from gpufence.dialects import Units, gpushare, volcano
from gpufence.nodes import node_figures, stated_cards, units_of
from gpufence.shape import Object, as_object, as_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.cards import Card


class Reckoning(NamedTuple):
    """
    What the Node is to say, and the units that follow, the same for the webhook and for us.
    """

    said: NodeCards
    units: Units

    @property
    def cards(self) -> tuple[Card, ...]:
        return self.said.cards


def reckon(seen: NodeCards, node: Object, defaults: Units) -> Reckoning:
    """
    Work out the units of this node's resources.

    A resource that the node does not offer at the moment, because its device plugin is down, keeps
    the unit that was found before: its pods still run, and a guess is off by a factor of 1024.
    """
    figures = node_figures(node)
    before = _same_cards(seen, stated_cards(node))
    unit = _gpushare(figures, seen.cards, before)
    factor = _volcano(figures, seen.cards, before)
    said = NodeCards(
        driver=seen.driver,
        observed=seen.observed,
        cards=seen.cards,
        units=() if unit is None else ((names.GPUSHARE_MEMORY, unit),),
        factor=factor,
    )
    metadata = as_object(node.get("metadata"), "metadata")
    labels = as_texts(metadata.get("labels"), "metadata.labels")
    return Reckoning(said, units_of(said, figures, said.cards, labels, defaults))


def differ(said: NodeCards | None, wanted: NodeCards) -> bool:
    """
    Return whether the Node says something else, the time of the observation left aside.
    """
    return said is None or _timeless(said) != _timeless(wanted)


def _timeless(said: NodeCards) -> str:
    return write_cards(NodeCards(said.driver, "", said.cards, said.units, said.factor))


def _same_cards(seen: NodeCards, before: NodeCards | None) -> NodeCards | None:
    if before is None or {(card.uuid, card.memory_bytes) for card in before.cards}.isdisjoint(
        (card.uuid, card.memory_bytes) for card in seen.cards
    ):
        return None
    return before


def _gpushare(
    figures: Mapping[str, int], cards: tuple[Card, ...], before: NodeCards | None
) -> str | None:
    if names.GPUSHARE_MEMORY not in figures:
        return None if before is None else dict(before.units).get(names.GPUSHARE_MEMORY)
    return gpushare.unit_of(figures, cards)


def _volcano(
    figures: Mapping[str, int], cards: tuple[Card, ...], before: NodeCards | None
) -> int | None:
    if names.VOLCANO_MEMORY not in figures:
        return None if before is None else before.factor
    return volcano.factor_of(figures, cards)
