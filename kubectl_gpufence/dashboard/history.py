"""
PURE. How much of each card was held in the last hour, since somebody has been looking.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_gpufence.scene import is_stale
from kubectl_gpufence.top.cards import card_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubectl_gpufence.scene import Scene
    from kubectl_gpufence.top.cards import CardLine

STEP_SECONDS: Final = 10.0
HOUR_SECONDS: Final = 3600.0

_MOST: Final = int(HOUR_SECONDS / STEP_SECONDS)
_WHOLE: Final = 1000


def used_of_cards(scene: Scene) -> dict[str, tuple[int | None, int]]:
    """
    Return what is held of each card at this moment, None where nobody knows, and its size.
    """
    return {
        card_key(line): (
            None if line.snapshot is None or is_stale(line.snapshot) else line.card.used_bytes,
            line.card.total_bytes,
        )
        for line in card_lines(scene)
    }


def card_key(line: CardLine) -> str:
    return f"{line.node}/{line.card.uuid}"


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
