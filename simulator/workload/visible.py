"""
Which cards a process sees and uses: what it is told, or what its container was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.nvml.layout import NO_INSTANCE
from simulator.workload.errors import NoCardError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.nvml.processes import CardPlace
    from simulator.nvml.state import State

VARIABLE = "NVIDIA_VISIBLE_DEVICES"


def choose(state: State, asked: str | None, variables: Mapping[str, str]) -> tuple[CardPlace, ...]:
    """
    Resolve the cards to use: those asked for or, like any framework, the first visible one.
    """
    if asked is not None:
        names = asked.split(",") if asked != "all" else [str(i) for i in range(len(state.cards))]
    else:
        names = [_first_visible(variables)]
    return tuple(_usable(state, state.find(name.strip())) for name in names)


def _first_visible(variables: Mapping[str, str]) -> str:
    text = variables.get(VARIABLE)
    if text in {None, "all"}:
        return "0"
    if text in {"", "none", "void"}:
        raise NoCardError(
            f"RuntimeError: no CUDA-capable device is detected ({VARIABLE} is {text!r}; "
            "request a GPU or set it to all, an index or a UUID)"
        )
    return str(text).split(",", maxsplit=1)[0]


def _usable(state: State, place: CardPlace) -> CardPlace:
    """
    Replace a card in MIG mode by its first instance, as CUDA does.
    """
    card = state.cards[place.card]
    if place.instance != NO_INSTANCE or not card.mig:
        return place
    if not card.instances:
        raise NoCardError(f"RuntimeError: {card.name} is in MIG mode and has no instance to use")
    return card.instances[0].place
