"""
PURE. How long to leave alone what has just failed.
"""

from __future__ import annotations

from typing import Final

_LAST_DOUBLING: Final = 32


def pause_seconds(failures: int, first_seconds: float, limit_seconds: float) -> float:
    """
    Tell the pause after so many failures in a row: none after the first, then a growing one.
    """
    if failures <= 1:
        return 0.0
    doublings = min(failures - 2, _LAST_DOUBLING)
    return min(first_seconds * 2.0**doublings, limit_seconds)
