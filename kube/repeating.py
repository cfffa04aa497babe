"""
A turn again and again on a thread of its own: trouble with the API server is told once in ten
minutes, not each time, and a bug is logged and ends nothing.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from gpufence.errors import GpufenceError
from gpufence.times import Backoff
from kube.errors import ForbiddenError, ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

COMPLAINT_SECONDS: Final = 600.0
"""What is wrong is said again after so long, if it still is."""
LONGEST_OBEDIENCE_SECONDS: Final = 120.0
"""The longest pause that an API server can ask for."""
JITTER: Final = 0.25
"""The share by which a pause is longer at most, so that programs do not act in step."""
CLOSE_SECONDS: Final = 2.0
_BUG_SECONDS: Final = 10.0


class Clock(Protocol):
    """Time and chance, to be replaced in tests."""

    def monotonic(self) -> float: ...

    def chance(self) -> float:
        """Draw a number in [0, 1)."""
        ...

    def wait(self, stop: threading.Event, seconds: float) -> None:
        """Wait so long, or until the event is set."""
        ...


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def chance(self) -> float:
        return random.random()  # noqa: S311 (spreads load, guards nothing)

    def wait(self, stop: threading.Event, seconds: float) -> None:
        stop.wait(min(seconds, threading.TIMEOUT_MAX))


class Complaint:
    """Says what is wrong with one thing, and what helps where a right is missing."""

    def __init__(self, what: str, forbidden: str, clock: Clock) -> None:
        self._what = what
        self._forbidden = forbidden
        self._clock = clock
        self._said_at = -math.inf

    def text(self, error: Exception) -> str:
        remedy = self._forbidden if isinstance(error, ForbiddenError) else ""
        return f"{error}; {remedy}" if remedy else str(error)

    def say(self, error: Exception) -> None:
        now = self._clock.monotonic()
        due = now - self._said_at >= COMPLAINT_SECONDS
        _log.log(logging.WARNING if due else logging.DEBUG, "%s: %s", self._what, self.text(error))
        if due:
            self._said_at = now


class Repeating:
    """
    Calls `turn` on a thread of its own until stopped; a turn returns for how many seconds to pause,
    `math.inf` until woken.

    A turn that raises a GpufenceError comes again after a pause that grows, `trouble` says why
    meanwhile, with `forbidden` as remedy where a right is missing. `finish` is called at the
    end, on the same thread.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], float],
        *,
        finish: Callable[[], None] | None = None,
        forbidden: str = "",
        backoff: Backoff | None = None,
        jitter: float = JITTER,
        clock: Clock | None = None,
    ) -> None:
        self._name = name
        self._first_seconds = 0.0
        self._turn = turn
        self._finish = finish
        self._backoff = backoff or Backoff()
        self._jitter = jitter
        self._clock = clock or SystemClock()
        self._complaint = Complaint(name, forbidden, self._clock)
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = 0
        self._turned_at = self._clock.monotonic()
        self._stop_by = math.inf
        self.bugs = 0
        self.trouble = ""

    @property
    def stopped(self) -> bool:
        """Return whether the end has begun: a turn that takes long looks at this."""
        return self._ended.is_set()

    @property
    def running(self) -> bool:
        """Return whether the thread lives."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def left_seconds(self) -> float:
        """Return how long the end is waited for; without bound before it has begun."""
        return self._stop_by - self._clock.monotonic()

    @property
    def silence_seconds(self) -> float:
        """Return for how long no turn has ended."""
        return self._clock.monotonic() - self._turned_at

    def start(self, after_seconds: float = 0.0) -> None:
        """Begin after a while, in a thread that does not keep the program alive."""
        self._first_seconds = after_seconds
        self._thread = threading.Thread(target=self.run, name=self._name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Have the next turn begin at once, after the one that is under way."""
        self._wake.set()

    def end(self) -> None:
        """Begin no other turn."""
        self._ended.set()
        self._wake.set()

    def stop(self, seconds: float = CLOSE_SECONDS) -> bool:
        """
        End, and wait for that so long; return whether it is over. A turn itself may call this.
        """
        self._stop_by = self._clock.monotonic() + seconds
        self.end()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        thread.join(max(seconds, 0.0))
        return not self.running

    def run(self) -> None:
        """Do all this in the caller's thread."""
        pause = self._first_seconds
        try:
            while True:
                if pause > 0 and not self._ended.is_set():
                    self._clock.wait(self._wake, pause)
                self._wake.clear()
                if self._ended.is_set():
                    return
                pause = self._turn_once()
                self._turned_at = self._clock.monotonic()
        finally:
            if self._finish is not None:
                self._finish()

    def _turn_once(self) -> float:
        try:
            pause = self._turn()
        except GpufenceError as error:
            return self._failed(error)
        except Exception:  # noqa: BLE001 (a bug in one turn must not end the turns)
            _log.exception("%s: a turn failed", self._name)
            self.bugs += 1
            return _BUG_SECONDS
        if self._failures:
            _log.info("%s: well again", self._name)
        self._failures, self.trouble = 0, ""
        return pause * (1 + self._jitter * self._clock.chance())

    def _failed(self, error: GpufenceError) -> float:
        self._failures += 1
        self.trouble = self._complaint.text(error)
        self._complaint.say(error)
        asked = error.retry_after_seconds if isinstance(error, ReplyError) else None
        pause = self._backoff.delay_seconds(self._failures, self._clock.chance())
        return max(pause, min(asked or 0.0, LONGEST_OBEDIENCE_SECONDS))
