"""
Moments and lengths of time as people and programs write them on objects: RFC 3339, and 1h30m.

Moments are seconds since the epoch, lengths are seconds. What cannot be read raises `InvalidError`.
And how long to wait before the next attempt: exponential, bounded, and never in step.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from gpufence.errors import InvalidError, Problem

_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_LENGTH: Final = re.compile(
    r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?"
)
_UNITS: Final = (86400, 3600, 60, 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds()
_LAST: Final = (datetime.max.replace(tzinfo=UTC, microsecond=0) - _EPOCH).total_seconds()
_LONGEST: Final = 36_500 * 86_400.0


def read_moment(text: str, field: str) -> float:
    """Read RFC 3339, such as the API server writes it."""
    if _MOMENT.fullmatch(text):
        try:
            return (datetime.fromisoformat(text).astimezone(UTC) - _EPOCH).total_seconds()
        except (ValueError, OverflowError):
            pass  # the shape of a moment, and no such day, or none of these years in UTC
    remedy = "write it as RFC 3339, such as 2027-03-01T18:00:00Z"
    raise InvalidError(Problem(field, text, "is no moment", remedy))


def write_moment(moment: float) -> str:
    """
    Write RFC 3339 in UTC, rounded down to whole seconds, as the API server does; what is beyond its
    years as the last of them, or the first.
    """
    at = _EPOCH + timedelta(seconds=min(max(moment, _FIRST), _LAST) // 1)
    return f"{at.replace(tzinfo=None).isoformat()}Z"


def read_length(text: str, field: str, *, least: float = 0.0) -> float:
    """Read a length of time in days, hours, minutes and seconds: 15m, 1h30m, 90s."""
    remedy = f"write a time of at least {least:g}s, such as 15m or 1h30m"
    match = _LENGTH.fullmatch(text)
    if match is None or not text:
        raise InvalidError(Problem(field, text, "is no length of time", remedy))
    seconds = float(sum(int(n or 0) * unit for n, unit in zip(match.groups(), _UNITS, strict=True)))
    if seconds < least:
        raise InvalidError(Problem(field, text, "is too short", remedy))
    if seconds > _LONGEST:
        raise InvalidError(Problem(field, text, "is longer than a hundred years", remedy))
    return seconds


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
