"""How far this machine's clock is from the API server's, by the Date of its answers."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import NamedTuple


class _Answered(NamedTuple):
    """What an answer said, and when it came by a clock that nobody sets."""

    date: str
    at: float


def boottime() -> float:
    """Return a time that goes on while this machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class AnswerClock:
    """
    Remembers the last answer. What time it is there now follows from how long ago that was, so that
    a clock that is set here shows at once, before the next answer.
    """

    def __init__(self) -> None:
        self._heard: _Answered | None = None

    def hear(self, date: str | None) -> None:
        if date:
            self._heard = _Answered(date, boottime())

    def ahead_seconds(self, now: float) -> float | None:
        """
        Return how far a time of this machine's clock is ahead of the API server's, to a second and
        the time that an answer takes; None where no answer has told.
        """
        heard = self._heard
        if heard is None:
            return None
        there = read_date(heard.date)
        return None if there is None else now - (there + boottime() - heard.at)


def read_date(text: str) -> float | None:
    """Read an answer's Date, in seconds since 1970; None where it is none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
