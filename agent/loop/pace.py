"""
The thread that ticks: one tick after the other, without drift, until told to stop.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent.loop.schedule import next_due

if TYPE_CHECKING:
    from collections.abc import Callable


class Pace:
    """
    Runs `tick` at multiples of the interval, and `finish` at the end, on one and the same thread:
    the kernel ends NVML's child with the thread that started it.
    """

    def __init__(
        self,
        tick: Callable[[], None],
        skip: Callable[[int], None],
        finish: Callable[[], None],
        interval_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._tick = tick
        self._skip = skip
        self._finish = finish
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)
        self._ticked_at = clock()

    def start(self) -> None:
        self._thread.start()

    def stop(self, wait_seconds: float) -> bool:
        """
        End after the tick that is under way; tell whether it did so in time.
        """
        self._stop.set()
        self._thread.join(wait_seconds)
        return not self._thread.is_alive()

    @property
    def silence_seconds(self) -> float:
        """
        Return how long ago the last tick ended.
        """
        return self._clock() - self._ticked_at

    def _run(self) -> None:
        due = self._clock()
        try:
            while not self._stop.is_set():
                self._tick()
                self._ticked_at = now = self._clock()
                due, skipped = next_due(due, now, self._interval_seconds)
                if skipped:
                    self._skip(skipped)
                self._stop.wait(max(due - now, 0.0))
        finally:
            self._finish()
