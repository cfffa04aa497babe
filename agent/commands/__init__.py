"""What people run on a node, and the tables it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNKNOWN: Final = "?"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Align columns; those in `right` to the right. What names contain is made printable."""
    lines = [head, *([text.printable(cell) for cell in row] for row in rows)]
    return "".join(f"{line}\n" for line in text.aligned(lines, right=right, gap="   "))


def mebibytes(amount: int | None) -> str:
    """Write whole MiB, rounded up; what nobody can tell is no number."""
    return text.mebibytes(amount, unknown=UNKNOWN)
