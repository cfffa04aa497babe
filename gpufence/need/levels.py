"""
For how long how much was held: a few levels for each day, which say what was enough most of the
time.

A level is the amount at its upper end, and what has to be merged is counted at the level above: so
what is said of the time is never too little.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from gpufence.errors import InvalidError, Problem
from gpufence.quantity import MIB, read_bytes, write_bytes
from gpufence.shape import WHOLE_SECONDS, FieldKind, as_object

if TYPE_CHECKING:
    from collections.abc import Iterable

Levels: TypeAlias = tuple[tuple[int, float], ...]
"""Amounts and the seconds for which they were held, the smallest first."""

MOST_LEVELS: Final = 4
"""Of a day: what a model holds at rest, at work, and two on the way; more would not be kept."""

MOST_OF_THE_TIME_PERCENT: Final = 95

_MOST_READ: Final = 64
_STEPS: Final = 8
_LEAST_UNIT: Final = 8 * MIB
_ALL: Final = 100


def level_of(amount: int) -> int:
    """Return the level of an amount: from each power of two to the next there are eight."""
    unit = _LEAST_UNIT
    while 2 * _STEPS * unit < amount:
        unit *= 2
    return max(-(-amount // unit), _STEPS) * unit


def held_longer(levels: Levels, level: int, seconds: float) -> Levels:
    """Add the time for which a level was held; the shortest times go to the level above."""
    return _few({**dict(levels), level: dict(levels).get(level, 0.0) + seconds})


def seconds_of(levels: Levels) -> float:
    return sum(seconds for _, seconds in levels)


def more_seen(one: Levels, other: Levels) -> Levels:
    """Return those of the longer time, of two that say it of the same day."""
    return max(one, other, key=lambda levels: (seconds_of(levels), levels))


def enough_mostly(days: Iterable[Levels]) -> int:
    """Return the least level above which nothing was held for 95 % of the time of all days."""
    times = sorted(pair for levels in days for pair in levels)
    passed = list(accumulate(seconds for _, seconds in times))
    enough = bisect_left(passed, passed[-1] * MOST_OF_THE_TIME_PERCENT / _ALL)
    return times[enough][0]


def _few(times: dict[int, float]) -> Levels:
    while len(times) > MOST_LEVELS:
        ordered = sorted(times)
        least = min(ordered[:-1], key=lambda level: (times[level], level))
        above = ordered[ordered.index(least) + 1]
        times[above] += times.pop(least)
    return tuple(sorted(times.items()))


def _write(levels: Levels) -> dict[str, object]:
    return {write_bytes(level, largest="Mi"): round(seconds) for level, seconds in levels}


def _read(value: object, path: str) -> Levels:
    times: dict[int, float] = {}
    written = as_object(value, path)
    if len(written) > _MOST_READ:
        raise InvalidError(Problem(path, f"{len(written)} levels", "are too many", "write few"))
    for text, seconds in written.items():
        level = read_bytes(text, path)
        held = cast("float", WHOLE_SECONDS.read(seconds, f"{path}.{text}"))
        times[level] = times.get(level, 0.0) + held
    return _few(times)


LEVELS: Final = FieldKind(_write, _read)
"""A JSON object of amounts and whole seconds."""
