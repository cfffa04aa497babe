"""
PURE. What the numbers on this node's pods mean: its own figures beside the cards NVML sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.cards import NodeCards, read_cards, write_cards
from gpufence.dialects import Units
from gpufence.errors import GpufenceError, InvalidError
from gpufence.nodes import gpushare_unit, read_node, volcano_factor
from gpufence.quantity import UNIT_BYTES, read_count
from gpufence.shape import Object, as_object, as_text

if TYPE_CHECKING:
    from gpufence.cards import Card

_FIGURES: Final = (names.GPUSHARE_MEMORY, names.GPUSHARE_COUNT, names.VOLCANO_MEMORY)


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
    figures = _figures(node)
    before = _same_cards(seen, cards_said(node))
    unit = _gpushare(figures, seen.cards, before)
    factor = _volcano(figures, seen.cards, before)
    said = NodeCards(
        driver=seen.driver,
        observed=seen.observed,
        cards=seen.cards,
        units=() if unit is None else ((names.GPUSHARE_MEMORY, unit),),
        factor=factor,
    )
    return Reckoning(said, _units(said, node, defaults))


def cards_said(node: Object) -> NodeCards | None:
    """
    Read what the Node says about its cards; None where it says nothing that can be read.
    """
    try:
        metadata = as_object(node.get("metadata"), "metadata")
        annotations = as_object(metadata.get("annotations"), "metadata.annotations")
        return read_cards(as_text(annotations.get(names.CARDS), names.CARDS))
    except GpufenceError:
        return None


def differ(said: NodeCards | None, wanted: NodeCards) -> bool:
    """
    Tell whether the Node says something else, the time of the observation left aside.
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
    figures: dict[str, int], cards: tuple[Card, ...], before: NodeCards | None
) -> str | None:
    if names.GPUSHARE_MEMORY not in figures:
        return None if before is None else dict(before.units).get(names.GPUSHARE_MEMORY)
    whole = sum(1 for card in cards if card.mig is None)
    count = figures.get(names.GPUSHARE_COUNT, whole)
    return gpushare_unit(figures[names.GPUSHARE_MEMORY], count, cards)


def _volcano(
    figures: dict[str, int], cards: tuple[Card, ...], before: NodeCards | None
) -> int | None:
    if names.VOLCANO_MEMORY not in figures:
        return None if before is None else before.factor
    return volcano_factor(figures[names.VOLCANO_MEMORY], cards)


def _units(said: NodeCards, node: Object, defaults: Units) -> Units:
    """
    Read the node as the webhook will once it says so.
    """
    metadata = as_object(node.get("metadata"), "metadata")
    annotated = {**metadata, "annotations": {names.CARDS: write_cards(said)}}
    found = read_node({**node, "metadata": annotated}, defaults)
    if found is not None:
        return found.units
    unit = dict(said.units).get(names.GPUSHARE_MEMORY)
    return Units(
        gpushare_bytes=defaults.gpushare_bytes if unit is None else UNIT_BYTES.get(unit),
        volcano_factor=said.factor or defaults.volcano_factor,
        clients=defaults.clients,
        driver_caps=defaults.driver_caps,
    )


def _figures(node: Object) -> dict[str, int]:
    """
    Read what the node offers; capacity stays where a broken device leaves allocatable.
    """
    status = as_object(node.get("status"), "status")
    found: dict[str, int] = {}
    for part in ("allocatable", "capacity"):
        for resource, value in as_object(status.get(part), f"status.{part}").items():
            if resource in _FIGURES:
                try:
                    count = read_count(value, resource)
                except InvalidError:
                    continue
                if count:
                    found[resource] = count
    return found
