"""
PURE. How much of each card was held in the last hour, since somebody has been looking.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP_SECONDS: Final = 10.0
HOUR_SECONDS: Final = 3600.0

_MOST: Final = int(HOUR_SECONDS / STEP_SECONDS)
_WHOLE: Final = 1000


class CardPoint(NamedTuple):
    """
    One moment of all cards: thousandths of each that were held, None where nobody knew.
    """

    number: int
    at: float
    used: dict[str, int | None]


class CardHistory:
    """
    The points of an hour at most, each with the number of the look that it comes from.
    """

    def __init__(self) -> None:
        self._points: deque[CardPoint] = deque(maxlen=_MOST)

    def add(self, number: int, at: float, cards: Mapping[str, tuple[int | None, int]]) -> None:
        """
        Take in what is held of each card and its size, unless the last point is too near.
        """
        if self._points and at - self._points[-1].at < STEP_SECONDS:
            return
        used = {
            key: None if held is None or not total else held * _WHOLE // total
            for key, (held, total) in cards.items()
        }
        self._points.append(CardPoint(number, at, used))

    def since(self, number: int, now: float) -> dict[str, object]:
        """
        Return the points after a look, card by card, and how many seconds ago each one was.
        """
        points = [point for point in self._points if point.number > number]
        keys = dict.fromkeys(key for point in points for key in point.used)
        return {
            "ago": [round(now - point.at, 1) for point in points],
            "cards": {key: [point.used.get(key) for point in points] for key in keys},
        }
