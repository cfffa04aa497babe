"""
The thread that ticks: one tick after the other until told to stop, each a little sooner than the
interval, by chance. Who knows when the agent looks can be out of sight each time.
"""

from __future__ import annotations

from random import SystemRandom
from typing import TYPE_CHECKING

from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Callable

_DICE = SystemRandom()


def next_due(
    due: float, now: float, interval_seconds: float, chance: float = 0.0
) -> tuple[float, int]:
    """
    Return when the tick after the one that was due at `due` is due, and how many are left out.

    Ticks are due between half an interval and a whole one after each other, as `chance` in [0, 1)
    has it, however long each takes; those whose time passed while another was running are left out,
    never made up for.
    """
    late = max(now - due, 0.0)
    skipped = int(late // interval_seconds)
    return due + (skipped + 1 - chance / 2) * interval_seconds, skipped


class TickThread:
    """
    Calls `tick` again and again, with the number of ticks left out since the last, and `finish` at
    the end, on one and the same thread: the kernel ends NVML's child with the thread that started
    it.
    """

    def __init__(
        self,
        tick: Callable[[int], None],
        finish: Callable[[], None],
        interval_seconds: float,
        clock: Callable[[], float],
        chance: Callable[[], float] = _DICE.random,
    ) -> None:
        self._tick = tick
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._chance = chance
        self._repeating = Repeating("loop", self._turn, finish=finish, jitter=0.0)
        self._due = self._ticked_at = clock()
        self._skipped = 0

    def start(self) -> None:
        self._repeating.start()

    def stop(self, wait_seconds: float) -> bool:
        """End after the tick that is under way; return whether it did so in time."""
        return self._repeating.stop(wait_seconds)

    @property
    def silence_seconds(self) -> float:
        """Return how long ago the last tick ended."""
        return self._clock() - self._ticked_at

    def _turn(self) -> float:
        self._tick(self._skipped)
        self._ticked_at = now = self._clock()
        self._due, self._skipped = next_due(self._due, now, self._interval_seconds, self._chance())
        return max(self._due - now, 0.0)
