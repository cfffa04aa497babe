"""How long to wait before the next attempt: exponential, bounded, and never in step."""

from __future__ import annotations

from typing import NamedTuple

_LAST_DOUBLING = 32


def doubled(first_seconds: float, limit_seconds: float, times: int) -> float:
    """Return the first wait doubled so many times, but never more than the limit."""
    return min(limit_seconds, first_seconds * 2.0 ** min(times, _LAST_DOUBLING))


class Backoff(NamedTuple):
    """
    Grow from `first_seconds` to `limit_seconds`, each wait drawn from the upper half of its step.

    A thousand agents lose the same API server in the same instant; the draw keeps them from
    returning in the same instant too, and the lower half left out keeps every wait a real one.
    """

    first_seconds: float = 0.5
    limit_seconds: float = 30.0

    def delay_seconds(self, attempt: int, chance: float) -> float:
        """
        Return the wait after the `attempt`-th failure in a row, counted from 1.

        `chance` is a random number in [0, 1).
        """
        if attempt < 1:
            return 0.0
        return doubled(self.first_seconds, self.limit_seconds, attempt) * (1 + chance) / 2
