"""
PURE. Which cards there are, by what was seen of them in this sample and in earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.model.sample import NO_TROUBLE, Trouble
from agent.nvml.faults import trouble_of
from agent.nvml.protocol import UNNAMED, Failure, Looked
from gpufence.cards import Card, Instance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.sample import CardMemory
    from agent.nvml.protocol import Seen


_EMPTY: Final = Trouble("it says that it has no memory; look at it with nvidia-smi")


@dataclass(frozen=True, slots=True)
class Sight:
    """
    One card: its memory, or why that is not known. It is `there` if the driver names it.
    """

    card: Card
    memory: CardMemory | None
    there: bool
    trouble: Trouble = NO_TROUBLE


@dataclass(frozen=True, slots=True)
class Sights:
    """
    All cards, and what is wrong with those that do not say who they are.
    """

    cards: tuple[Sight, ...]
    unidentified: tuple[Trouble, ...] = ()


def sights(looks: Mapping[int, Looked | Trouble], known: Mapping[str, Card]) -> Sights:
    """
    Put the cards together from a look at each index, or the reason why there is none.

    A card known before that nobody names now is still a card, unless it can be told to be gone: all
    indices answer, or its MIG layout is another one.
    """
    seen = [(index, look) for index, look in sorted(looks.items()) if isinstance(look, Looked)]
    troubles = {index: why for index, why in sorted(looks.items()) if isinstance(why, Trouble)}
    troubles |= {index: trouble_of(gap) for index, look in seen for gap in look.gaps}
    settled = {look.card.uuid for _, look in seen if not look.gaps}
    items = [(index, look, item) for index, look in seen for item in _items(look)]
    described = [(_card(index, look, item, known), index, item) for index, look, item in items]
    found = {
        card.uuid: Sight(card, _memory(item), there=True, trouble=_trouble(item))
        for card, _, item in described
        if card is not None
    }
    missing = tuple(
        Sight(card, None, there=False, trouble=_reason(card, troubles))
        for uuid, card in known.items()
        if uuid not in found and troubles and not _was_cut(card, settled)
    )
    places = {uuid: place for place, uuid in enumerate(dict.fromkeys((*known, *found)))}
    cards = sorted(
        (*found.values(), *missing),
        key=lambda sight: (sight.card.index, places[sight.card.uuid]),
    )
    accounted = {sight.card.index for sight in missing}
    sizeless = {i: _trouble(item) or _EMPTY for card, i, item in described if card is None}
    nameless = sizeless | {i: why for i, why in troubles.items() if i not in accounted}
    return Sights(tuple(cards), tuple(why.of_card(i) for i, why in sorted(nameless.items())))


def _items(look: Looked) -> tuple[Seen, ...]:
    """
    Return what a physical card offers: itself, or its instances.
    """
    return (look.card,) if look.instances is None else look.instances


def _card(index: int, look: Looked, seen: Seen, known: Mapping[str, Card]) -> Card | None:
    """
    Describe a card, with what is known from before where the driver does not tell; without the size
    of its memory it cannot be described. An instance has the index of the card it is cut from.
    """
    before = known.get(seen.uuid)
    model, capability = seen.model, seen.capability
    total = 0 if isinstance(seen.memory, Failure) else seen.memory.total_bytes
    if before is not None:
        total = total or before.memory_bytes
        model = before.model if model == UNNAMED else model
        capability = capability or before.compute_capability
    if not total:
        return None
    mig = None if look.instances is None else Instance(look.card.uuid, seen.profile)
    card = Card(seen.uuid, index, model, total, capability, mig)
    return before if card == before else card


def _memory(seen: Seen) -> CardMemory | None:
    return None if isinstance(seen.memory, Failure) else seen.memory


def _trouble(seen: Seen) -> Trouble:
    return trouble_of(seen.memory) if isinstance(seen.memory, Failure) else NO_TROUBLE


def _was_cut(card: Card, settled: set[str]) -> bool:
    """
    Tell whether a card that is not named any more became instances, or was one.
    """
    return card.uuid in settled or (card.mig is not None and card.mig.parent in settled)


def _reason(card: Card, troubles: Mapping[int, Trouble]) -> Trouble:
    """
    Say why a card is not named: its own index tells, unless the indices have changed.
    """
    return troubles.get(card.index) or next(iter(troubles.values()))
