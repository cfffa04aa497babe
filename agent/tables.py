"""
PURE. Columns for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNKNOWN: Final = "?"
_GAP = "   "


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """
    Align columns; those in `right` to the right. What names contain is made printable.
    """
    lines = [tuple(head), *(tuple(map(_printable, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    to_the_right = frozenset(right)
    return "".join(
        _GAP.join(
            cell.rjust(width) if column in to_the_right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def mebibytes(amount: int | None) -> str:
    """
    Write whole MiB, rounded up; what nobody can tell is no number.
    """
    return UNKNOWN if amount is None else f"{-(-amount // MIB)} MiB"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
