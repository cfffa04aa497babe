"""
The cards of the node: simulated ones, in a state file that programs map and the node describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.cards import Card, Instance
from simulator.node.errors import SetupError
from simulator.nvml.build import CURRENT, find_variant
from simulator.nvml.cards import read_cards
from simulator.nvml.state import State

if TYPE_CHECKING:
    from pathlib import Path


def open_state(path: Path, cards: str | None, *, seed: str) -> State:
    """
    Make the state of these cards, one T4 unless named; or open the one that is there.

    Raises SetupError where the state that is there has other cards than those named.
    """
    if not path.exists():
        return State.create(path, cards or "T4", seed=seed)
    state = State.open(path)
    there = [card.name for card in state.cards]
    if cards is not None and [blueprint.model.name for blueprint in read_cards(cards)] != there:
        raise SetupError(
            f"{path} holds other cards ({', '.join(there)}); name no cards to use them, or another"
            " file to make new ones"
        )
    return state


def driver_version() -> str:
    """
    Return the version that the simulated library reports.
    """
    return find_variant(CURRENT).driver


def cards_of(state: State) -> tuple[Card, ...]:
    """
    Describe the cards in the order of their indices, each followed by its MIG instances.
    """
    found: list[Card] = []
    for index, place in enumerate(state.indices):
        card = state.cards[place]
        found.append(Card(card.uuid, index, card.name, card.memory, card.capability))
        found += [
            Card(
                uuid=one.uuid,
                index=index,
                model=card.name,
                memory_bytes=one.memory,
                compute_capability=card.capability,
                mig=Instance(card.uuid, one.profile),
            )
            for one in card.instances
        ]
    return tuple(found)
