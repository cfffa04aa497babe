"""
The thread that ticks: one tick after the other until told to stop, each a little sooner than the
interval, by chance. Who knows when the agent looks can be out of sight each time.
"""

from __future__ import annotations

import threading
from random import SystemRandom
from typing import TYPE_CHECKING

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
        self._finish = finish
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._chance = chance
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)
        self._ticked_at = clock()

    def start(self) -> None:
        self._thread.start()

    def stop(self, wait_seconds: float) -> bool:
        """End after the tick that is under way; return whether it did so in time."""
        self._stop.set()
        self._thread.join(wait_seconds)
        return not self._thread.is_alive()

    @property
    def silence_seconds(self) -> float:
        """Return how long ago the last tick ended."""
        return self._clock() - self._ticked_at

    def _run(self) -> None:
        due, skipped = self._clock(), 0
        try:
            while not self._stop.is_set():
                self._tick(skipped)
                self._ticked_at = now = self._clock()
                due, skipped = next_due(due, now, self._interval_seconds, self._chance())
                self._stop.wait(max(due - now, 0.0))
        finally:
            self._finish()
