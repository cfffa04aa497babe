"""PURE. Stretches of time, and what they add up to."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

_DRAIN = 0.5


class Span(NamedTuple):
    since: float
    until: float

    @property
    def seconds(self) -> float:
        return self.until - self.since


def without(span: Span, holes: Iterable[Span]) -> list[Span]:
    """Cut holes out of a span and return the pieces that stay whole."""
    pieces = []
    since = span.since
    for hole in sorted(holes):
        if hole.until <= since or hole.since >= span.until:
            continue
        if hole.since > since:
            pieces.append(Span(since, hole.since))
        since = max(since, hole.until)
    if since < span.until:
        pieces.append(Span(since, span.until))
    return pieces


def both(spans: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    """Return the stretches that lie in spans of either kind."""
    pieces = [
        Span(max(span.since, other.since), min(span.until, other.until))
        for span in spans
        for other in others
    ]
    return [piece for piece in pieces if piece.since < piece.until]


def widened(spans: Iterable[Span], by_seconds: float, from_: float = 0.0) -> list[Span]:
    """
    Make spans as much longer at both ends, none beginning before `from_`; join those that touch.
    """
    joined: list[Span] = []
    for span in sorted(spans):
        since, until = max(span.since - by_seconds, from_), span.until + by_seconds
        if until <= since:
            continue
        if joined and since <= joined[-1].until:
            joined[-1] = Span(joined[-1].since, max(joined[-1].until, until))
        else:
            joined.append(Span(since, until))
    return joined


def fullest(spans: Sequence[Span], window: Span, most: float, smear: float = 0.0) -> float:
    """
    Return the most that a bucket holds within the window, filled by these spans one second each
    second and drained at half the speed between them; nothing unless a span meets the window.

    Who looks now and then takes what a look shows to hold until the next one: up to `smear` seconds
    after each span but the last.
    """
    level = best = 0.0
    last: float | None = None
    for since, until in spans:
        if since > window.until:
            break
        if last is not None:
            gap = since - last
            drained = max(gap - smear, 0.0) * _DRAIN
            level = max(min(level + min(gap, smear), most) - drained, 0.0)
        level = min(level + min(until, window.until) - since, most)
        last = until
        if until >= window.since:
            best = max(best, level)
    return best
