"""
A simulated machine in words, for a person at a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.nvml.card import Card
    from simulator.nvml.processes import Use
    from simulator.nvml.state import State


def describe(state: State) -> str:
    """
    List cards, their instances and processes, and the active faults.
    """
    return "\n".join([*_cards(state), *_faults(state)])


def _cards(state: State) -> Iterator[str]:
    for index, place in enumerate(state.indices):
        card = state.cards[place]
        room = card.room
        yield (
            f"card {index}: {card.name}, {card.uuid}: {_mib(room.taken)} taken, "
            f"{_mib(room.reserved)} reserved, {_mib(room.free)} free of {_mib(room.total)}"
        )
        for instance in card.instances:
            number = instance.place.instance
            yield f"  instance {index}:{number}: {instance.profile}, {instance.uuid}"
        for use in card.uses:
            yield f"  {_use(card, use)}"


def _use(card: Card, use: Use) -> str:
    who = f"PID {use.pid}" if use.pid else "a PID of another namespace"
    lists = "+".join(one.name.lower() for one in use.lists if one.name)
    parts = [f"{who}: {_mib(use.memory)}", lists]
    if use.managed:
        parts.append(f"{_mib(use.managed)} managed")
    if card.instances:
        parts.append(f"instance {use.place.instance}")
    return ", ".join(parts)


def _faults(state: State) -> Iterator[str]:
    for number, fault in state.faults.active():
        where = "every card" if fault.card is None else f"the card at place {fault.card}"
        when = f"after {fault.after} calls" if fault.after else "at once"
        how_long = f"{fault.times} times" if fault.times else "until removed"
        yield (
            f"fault {number}: {fault.action.name.lower()} {fault.argument} in {fault.function} "
            f"on {where}, {when}, {how_long}"
        )


def _mib(amount: int) -> str:
    return f"{amount // MIB} MiB"
