"""
Amounts, times and other people's texts as they are written for people: in terminals, logs, events.

What is held is rounded up and what is allowed is rounded down, so that what is over a limit never
reads as equal to it. What nobody can tell is a word, never a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_MEBIBYTE_BITS = 20
_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_STEPS = ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "m"), (_MINUTE, "m", 1, "s"))


def printable(text: str, most: int | None = None) -> str:
    """
    Make somebody's text one line that is harmless to a terminal; `most` characters of it are kept.
    """
    cut = text if most is None or len(text) <= most else f"{text[:most]}..."
    if cut.isprintable():
        return cut
    return "".join([char if char.isprintable() else "?" for char in cut])


def listed(items: Sequence[str], most: int = 8) -> str:
    """List names, the first of them where somebody has given many."""
    if len(items) <= most:
        return ", ".join(items)
    return f"{', '.join(items[:most])} and {len(items) - most} more"


def mebibytes(amount: int | None, *, unit: str = " MiB", unknown: str = "unknown") -> str:
    """Write what is held in whole MiB, rounded up."""
    return unknown if amount is None else f"{-(-amount >> _MEBIBYTE_BITS)}{unit}"


def limit_mebibytes(amount: int | None, *, unit: str = " MiB", unknown: str = "unknown") -> str:
    """Write what may be held in whole MiB, rounded down."""
    return unknown if amount is None else f"{amount >> _MEBIBYTE_BITS}{unit}"


def duration(seconds: float) -> str:
    """Write a time in its two largest units, for tables: 12s, 3m20s, 2h5m, 3d4h."""
    whole = max(int(seconds), 0)
    for step, unit, next_step, next_unit in _STEPS:
        if whole >= step:
            rest = whole % step // next_step
            return f"{whole // step}{unit}" + (f"{rest}{next_unit}" if rest else "")
    return f"{whole}s"


def coarse(seconds: float) -> str:
    """Write a time in its largest unit alone, rounded down, for narrow columns: 12s, 3m, 2h, 3d."""
    whole = max(int(seconds), 0)
    for step, unit, _, _ in _STEPS:
        if whole >= step:
            return f"{whole // step}{unit}"
    return f"{whole}s"


def minutes(seconds: float) -> str:
    """Write a time in seconds, and from two minutes on in both, for sentences: 119 s, 2 min 5 s."""
    whole = max(int(seconds), 0)
    if whole < 2 * _MINUTE:
        return f"{whole} s"
    return f"{whole // _MINUTE} min {whole % _MINUTE} s"


def aligned(rows: Sequence[Sequence[str]], *, gap: str = "  ") -> list[str]:
    """Align the columns of a table; one line for each row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
