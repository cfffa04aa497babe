"""
What the judge was asked in a play of chaos, and answered: a line of JSON for each call, in which
each value is written once and then named by its number, so that minutes fit into a small file.

Values name their classes and fields, since classes gain fields after a play was recorded.
"""

import json
import lzma
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from agent.model import decision, memory, pod, policy, sample, use
from gpufence import capped, cards, fences, mode

Call = tuple[str, tuple[Any, ...], Any]
"""What was called, with what, and the answer."""

Gained = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""By class: the fields that it did not have then, given those that it had."""

_TUPLE, _SET, _MAPPING, _ENUM, _CLASS = "tsmec"
_MODULES: Final = (decision, memory, pod, policy, sample, use, capped, cards, fences, mode)
_CLASSES: Final[Mapping[str, Any]] = {
    name: found
    for module in _MODULES
    for name, found in vars(module).items()
    if isinstance(found, type)
}


class Writer:
    """Writes one agent's calls, whose values refer to what was written before."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._known: dict[int, tuple[object, int]] = {}
        self._new: list[Any] = []

    def line(self, call: Call) -> str:
        self._new = []
        self._number(call)
        return json.dumps(self._new, separators=(",", ":"))

    def _number(self, value: Any) -> int:
        """Return a value's number, and keep the value: no other one may get its identity."""
        known = self._known.get(id(value))
        if known is None:
            kind, written = _parts(value, self._number)
            known = self._known[id(value)] = (value, self._write(kind, written))
        return known[1]

    def _write(self, kind: str, written: Any) -> int:
        if (kind, written) not in self._numbers:
            self._numbers[kind, written] = len(self._numbers)
            self._new.append([kind, *written] if isinstance(written, tuple) else written)
        return self._numbers[kind, written]


def _parts(value: Any, number: Callable[[Any], int]) -> tuple[str, Any]:
    """Take a value apart: its kind, and the numbers of what is in it."""
    if isinstance(value, Enum):
        return _ENUM, (number(type(value).__name__), number(value.value))
    names = _fields(value)
    if names:
        inside = [number(getattr(value, name)) for name in names]
        return _CLASS, (number(" ".join([type(value).__name__, *names])), *inside)
    if isinstance(value, tuple):
        return _TUPLE, tuple(map(number, value))
    if isinstance(value, frozenset):
        return _SET, tuple(map(number, sorted(value)))
    if isinstance(value, Mapping):
        return _MAPPING, tuple(number(each) for pair in value.items() for each in pair)
    return type(value).__name__, value


def _fields(value: Any) -> Iterable[str]:
    if is_dataclass(value):
        return [field.name for field in fields(value)]
    return getattr(value, "_fields", ())


def pack(recorded: Iterable[Path], file: Path) -> None:
    """Put what the agents of a play have written into one file, each ended by an empty line."""
    with lzma.open(file, "wt", preset=lzma.PRESET_EXTREME) as packed:
        for each in recorded:
            packed.write(each.read_text() + "\n")


def runs(file: Path, gained: Gained) -> Iterator[list[Call]]:
    """Read the calls of each agent of a play, one after the other."""
    values: list[Any] = []
    calls: list[Call] = []
    with lzma.open(file, "rt") as lines:
        for line in lines:
            if not line.strip():
                yield calls
                values, calls = [], []
                continue
            for written in json.loads(line):
                values.append(_made(written, values, gained))
            calls.append(values[-1])


def _made(written: Any, values: list[Any], gained: Gained) -> Any:
    if not isinstance(written, list):
        return written
    kind, *numbers = written
    inside = [values[number] for number in numbers]
    if kind == _CLASS:
        name, *names = inside[0].split()
        had = dict(zip(names, inside[1:], strict=True))
        return _CLASSES[name](**had, **(gained[name](had) if name in gained else {}))
    if kind == _ENUM:
        return _CLASSES[inside[0]](inside[1])
    if kind == _MAPPING:
        return dict(zip(inside[::2], inside[1::2], strict=True))
    return frozenset(inside) if kind == _SET else tuple(inside)
