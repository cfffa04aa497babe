"""
PURE. Amounts, times and names as people read them.

A dash stands for what does not apply, a question mark for what nobody knows: unknown is never zero.
"""

from __future__ import annotations

from typing import Final

from gpufence.quantity import write_bytes
from gpufence.text import duration, limit_mebibytes, mebibytes, printable

UNKNOWN: Final = "?"
NOT_THERE: Final = "-"

__all__ = [
    "NOT_THERE",
    "UNKNOWN",
    "allowed",
    "counted",
    "duration",
    "exact",
    "held",
    "percent",
    "safe",
    "total",
]


def safe(text: str) -> str:
    """
    Make somebody's text harmless to a terminal: one line, no control characters.
    """
    return printable(text)


def held(amount: int | None, *, none: str = UNKNOWN) -> str:
    """
    Write what is held in whole MiB, rounded up: over a limit must not read as equal to it.
    """
    return mebibytes(amount, unit="Mi", unknown=none)


def allowed(amount: int | None, *, none: str = NOT_THERE) -> str:
    """
    Write what may be held in whole MiB, rounded down.
    """
    return limit_mebibytes(amount, unit="Mi", unknown=none)


def exact(amount: int | None) -> str | None:
    """
    Write an amount for programs: a quantity without any rounding, None where nobody knows it.
    """
    return None if amount is None else write_bytes(amount, largest="Mi")


def percent(used: int | None, limit: int | None) -> str:
    """
    Write a share in whole percent, rounded up: what is over does not read as 100 %.
    """
    if used is None:
        return UNKNOWN
    return f"{-(-used * 100 // limit)}%" if limit else NOT_THERE


def counted(number: int, one: str, many: str = "") -> str:
    """
    Write a number with its noun: 1 pod, 2 pods.
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def total(amounts: list[int | None]) -> int | None:
    """
    Add up, unless one of them is unknown.
    """
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
