"""
Time and chance as a port, so that tests see every pause and take none.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading


class Clock(Protocol):
    """
    Time and chance, to be replaced in tests.
    """

    def monotonic(self) -> float: ...

    def chance(self) -> float:
        """
        Draw a number in [0, 1).
        """
        ...

    def wait(self, stop: threading.Event, seconds: float) -> None:
        """
        Wait so long, or until the event is set.
        """
        ...


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def chance(self) -> float:
        return random.random()  # noqa: S311 (spreads load, guards nothing)

    def wait(self, stop: threading.Event, seconds: float) -> None:
        stop.wait(seconds)
