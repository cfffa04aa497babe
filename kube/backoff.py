"""
PURE. How long to wait before the next attempt: exponential, bounded, and never in step.
"""

from __future__ import annotations

from dataclasses import dataclass

_LAST_DOUBLING = 32


@dataclass(frozen=True, slots=True)
class Backoff:
    """
    Grow from `first_seconds` to `limit_seconds`, each wait drawn from the upper half of its step.

    A thousand agents lose the same API server in the same instant; the draw keeps them from
    returning in the same instant too, and the lower half left out keeps every wait a real one.
    """

    first_seconds: float = 0.5
    limit_seconds: float = 30.0

    def delay_seconds(self, attempt: int, chance: float) -> float:
        """
        Tell the wait after the `attempt`-th failure in a row, counted from 1.

        `chance` is a random number in [0, 1).
        """
        if attempt < 1:
            return 0.0
        growth = 2.0 ** min(attempt, _LAST_DOUBLING)
        step = min(self.limit_seconds, self.first_seconds * growth)
        return step * (1 + chance) / 2
