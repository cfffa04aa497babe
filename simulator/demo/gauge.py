"""
A card's memory as a line: whose is how much of it, redrawn while it moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH = 60
MIB = 2**20
_LETTERS = "#=+*%"


def gauge(total_bytes: int, held: Mapping[str, int], others_bytes: int = 0) -> str:
    """
    Draw who holds what of a card, each holder with a mark of its own, then the sum.
    """
    cells = ""
    for mark, amount in zip(_LETTERS, held.values(), strict=False):
        cells += mark * _cells(amount, total_bytes)
    cells += "." * _cells(others_bytes, total_bytes)
    used = (sum(held.values()) + others_bytes) // MIB
    return f"[{cells[:WIDTH]:{WIDTH}}] {used:5} of {total_bytes // MIB} MiB"


def legend(names: Sequence[str]) -> str:
    """
    Say whose mark is whose.
    """
    return "   ".join(f"{mark} {name}" for mark, name in zip(_LETTERS, names, strict=False))


def _cells(amount: int, total: int) -> int:
    """
    Round up, so that who holds anything is seen.
    """
    return -(-amount * WIDTH // total)
