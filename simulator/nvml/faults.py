"""
Faults: what shall go wrong, for which function and card, from which call on and how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.nvml import layout
from simulator.nvml.errors import TableFullError
from simulator.nvml.functions import EVERY, FUNCTIONS, family, span
from simulator.nvml.layout import Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.nvml.codes import Code
    from simulator.nvml.file import StateFile


@dataclass(frozen=True, slots=True)
class Fault:
    """
    One thing that goes wrong.

    `function` is a name as in `functions.span`; `card` a place in the state (not an NVML index,
    which may change), or None for all. The fault acts after `after` calls that it concerns, for
    `times` calls or, if 0, for ever. `argument` means what `layout.Action` and the constructors
    below say.
    """

    action: Action
    function: str = EVERY
    card: int | None = None
    argument: int = 0
    after: int = 0
    times: int = 0

    @classmethod
    def code(
        cls,
        code: Code,
        function: str = EVERY,
        card: int | None = None,
        *,
        after: int = 0,
        times: int = 0,
    ) -> Fault:
        """
        Let calls end with this code instead of doing anything.
        """
        return cls(Action.RETURN, function, card, int(code), after, times)

    @classmethod
    def delay(cls, seconds: float, function: str = EVERY, card: int | None = None) -> Fault:
        """
        Let calls take this much longer.
        """
        return cls(Action.DELAY, function, card, round(seconds * 1_000_000))


class Faults:
    """
    The table of active faults of one state file; changes act from the next call on.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file

    def add(self, fault: Fault) -> int:
        """
        Activate a fault and return the number by which it is removed.
        """
        first, last = span(fault.function)
        with self._file.locks.allocation():
            state = self._file.layout
            number = self._free_place()
            entry = state.faults[number]
            entry.seen = 0
            entry.after, entry.times = fault.after, fault.times
            entry.argument, entry.action = fault.argument, fault.action
            entry.first, entry.last = first, last
            entry.card = layout.ANY_CARD if fault.card is None else fault.card
            entry.active = 1
            state.fault_count = max(state.fault_count, number + 1)
        return number

    def remove(self, number: int) -> None:
        self._file.layout.faults[number].active = 0

    def clear(self) -> None:
        """
        Let everything work again.
        """
        self._file.layout.fault_count = 0
        for entry in self._file.layout.faults:
            entry.active = 0

    def active(self) -> Iterator[tuple[int, Fault]]:
        """
        Go through the active faults with their numbers.
        """
        for number in range(self._file.layout.fault_count):
            entry = self._file.layout.faults[number]
            if entry.active:
                yield number, _read(entry)

    def _free_place(self) -> int:
        for number, entry in enumerate(self._file.layout.faults):
            if not entry.active:
                return number
        raise TableFullError("faults", layout.MAX_FAULTS)


def _read(entry: layout.Fault) -> Fault:
    card = None if entry.card == layout.ANY_CARD else entry.card
    function = _name(entry.first, entry.last)
    action = Action(entry.action)
    return Fault(action, function, card, entry.argument, entry.after, entry.times)


def _name(first: int, last: int) -> str:
    if (first, last) == span(EVERY):
        return EVERY
    base = family(FUNCTIONS[first])
    if span(base) == (first, last):
        return base
    return f"{base}_v1" if FUNCTIONS[first] == base else FUNCTIONS[first]
