"""Faults: what shall go wrong, for which function and card, from which call on and how often."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence.errors import InvalidError, Problem
from simulator.nvml import layout
from simulator.nvml.errors import TableFullError
from simulator.nvml.layout import FaultAction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.nvml.file import StateFile

EVERY = "*"
_HEADER = Path(__file__).with_name("library") / "functions.h"
FUNCTIONS = tuple(re.findall(r"X\((nvml\w+)\)", _HEADER.read_text()))
"""The functions that the library offers, in the order of their ids in the state file."""

_SUFFIX = re.compile(r"_v\d+$|WithFlags$")


class NvmlCode(IntEnum):
    """What a function of NVML answers; pynvml turns each into an exception of its own."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    IN_USE = 19
    MEMORY = 20
    NO_DATA = 21
    ARGUMENT_VERSION_MISMATCH = 25
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    INVALID_STATE = 29
    UNKNOWN = 999


@dataclass(frozen=True, slots=True)
class Fault:
    """
    One thing that goes wrong.

    `function` is a name as in `span`; `card` a place in the state (not an NVML index,
    which may change), or None for all. The fault acts after `after` calls that it concerns, for
    `times` calls or, if 0, for ever. `argument` means what `FaultAction` and the constructors
    below say.
    """

    action: FaultAction
    function: str = EVERY
    card: int | None = None
    argument: int = 0
    after: int = 0
    times: int = 0

    @classmethod
    def code(
        cls,
        code: NvmlCode,
        function: str = EVERY,
        card: int | None = None,
        *,
        after: int = 0,
        times: int = 0,
    ) -> Fault:
        return cls(FaultAction.RETURN, function, card, int(code), after, times)

    @classmethod
    def delay(cls, seconds: float, function: str = EVERY, card: int | None = None) -> Fault:
        return cls(FaultAction.DELAY, function, card, round(seconds * 1_000_000))


class Faults:
    def __init__(self, file: StateFile) -> None:
        self._file = file

    def add(self, fault: Fault) -> int:
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
        self._file.layout.fault_count = 0
        for entry in self._file.layout.faults:
            entry.active = 0

    def active(self) -> Iterator[tuple[int, Fault]]:
        for number in range(self._file.layout.fault_count):
            entry = self._file.layout.faults[number]
            if entry.active:
                yield number, _read(entry)

    def _free_place(self) -> int:
        for number, entry in enumerate(self._file.layout.faults):
            if not entry.active:
                return number
        raise TableFullError("faults", layout.MAX_FAULTS)


def _read(entry: layout.FaultLayout) -> Fault:
    card = None if entry.card == layout.ANY_CARD else entry.card
    function = _name(entry.first, entry.last)
    action = FaultAction(entry.action)
    return Fault(action, function, card, entry.argument, entry.after, entry.times)


def _name(first: int, last: int) -> str:
    if (first, last) == span(EVERY):
        return EVERY
    base = family(FUNCTIONS[first])
    if span(base) == (first, last):
        return base
    return f"{base}_v1" if FUNCTIONS[first] == base else FUNCTIONS[first]


def family(name: str) -> str:
    """Strip what tells the versions of one function apart."""
    return _SUFFIX.sub("", name)


def span(name: str) -> tuple[int, int]:
    """
    Turn a name into the first and last id it stands for.

    A name without a version stands for all versions, `_v1` for the oldest alone, `*` for all
    functions there are. An unknown name raises: a fault that never fires would prove nothing.
    """
    if name in {EVERY, ""}:
        return 0, len(FUNCTIONS) - 1
    if name.endswith("_v1") and name.removesuffix("_v1") in FUNCTIONS:
        place = FUNCTIONS.index(name.removesuffix("_v1"))
        return place, place
    if family(name) != name and name in FUNCTIONS:
        return FUNCTIONS.index(name), FUNCTIONS.index(name)
    places = [place for place, function in enumerate(FUNCTIONS) if family(function) == name]
    if not places:
        raise _unknown(name)
    return places[0], places[-1]


def _unknown(name: str) -> InvalidError:
    near = difflib.get_close_matches(name, FUNCTIONS, n=1)
    remedy = f"perhaps {near[0]} was meant" if near else "use a name such as nvmlDeviceGetName"
    return InvalidError(Problem("function", name, "is no function of the library", remedy))
