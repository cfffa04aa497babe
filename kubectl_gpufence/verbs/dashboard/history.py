"""
PURE. How much of each card, and of each pod's limit, was held in the last hour, since somebody has
been looking.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_gpufence.card_lines import card_lines
from kubectl_gpufence.cluster_view import is_stale
from kubectl_gpufence.pod_lines import card_index, pod_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubectl_gpufence.card_lines import CardLine
    from kubectl_gpufence.cluster_view import ClusterAnswers
    from kubectl_gpufence.pod_lines import PodLine

STEP_SECONDS: Final = 10.0
HOUR_SECONDS: Final = 3600.0
MOST_LINES: Final = 10_000
"""Lines that are kept, those of pods that are gone among them; 360 points of one take 720 bytes."""

_MOST: Final = int(HOUR_SECONDS / STEP_SECONDS)
_WHOLE: Final = 1000
_UNKNOWN: Final = 2**16 - 1


def shares_of_cards(cluster: ClusterAnswers) -> dict[str, int | None]:
    """Return how many thousandths of each card are held at this moment, None where nobody knows."""
    return {
        card_key(line): None
        if line.snapshot is None or is_stale(line.snapshot)
        else _share(line.card.used_bytes, line.card.total_bytes)
        for line in card_lines(cluster)
    }


def shares_of_pods(cluster: ClusterAnswers, namespace: str) -> dict[str, int | None]:
    """
    Return how many thousandths of its limit each pod holds on each card, or of the card where it
    has none.
    """
    return {
        pod_key(line): None if line.stale_seconds else _share(line.used_bytes, _most(line))
        for line in pod_lines(cluster, namespace)
        if line.use is not None
    }


def card_key(line: CardLine) -> str:
    return f"{line.node}/{line.card.uuid}"


def pod_key(line: PodLine) -> str:
    """
    Return what no other pod has, on no other card; one that is made again under a name is another.
    """
    known = line.pod or line.row
    return f"{known.uid if known else ''}/{card_index(line)}"


def _most(line: PodLine) -> int | None:
    if line.limit_bytes is not None or line.card is None:
        return line.limit_bytes
    return line.card.total_bytes


def _share(held: int | None, whole: int | None) -> int | None:
    return None if held is None or not whole else min(held * _WHOLE // whole, _UNKNOWN - 1)


class HourPoint(NamedTuple):
    """A moment, and the number of the look that it comes from."""

    number: int
    at: float


class HourHistory:
    """Lines of an hour at most, each with a value for every point, where somebody knew one."""

    def __init__(self) -> None:
        self._points: deque[HourPoint] = deque()
        self._lines: dict[str, array[int]] = {}

    def is_due(self, at: float) -> bool:
        return not self._points or at - self._points[-1].at >= STEP_SECONDS

    def add(self, number: int, at: float, shares: Mapping[str, int | None]) -> None:
        """Take in a look, and forget what is older than an hour."""
        if len(self._points) == _MOST:
            self._points.popleft()
            for line in self._lines.values():
                del line[0]
        self._make_room(shares)
        self._points.append(HourPoint(number, at))
        for key in [*self._lines]:
            self._lines[key].append(_written(shares.get(key)))
            if self._lines[key].count(_UNKNOWN) == len(self._points):
                del self._lines[key]

    def since(self, number: int, now: float) -> dict[str, object]:
        """Return the points after a look, line by line, and how many seconds ago each one was."""
        first = next(
            (place for place, point in enumerate(self._points) if point.number > number),
            len(self._points),
        )
        new = {key: line[first:] for key, line in self._lines.items()}
        return {
            "ago": [round(now - point.at, 1) for point in list(self._points)[first:]],
            "lines": {
                key: [None if value == _UNKNOWN else value for value in line]
                for key, line in new.items()
                if line.count(_UNKNOWN) < len(line)
            },
        }

    def _make_room(self, shares: Mapping[str, int | None]) -> None:
        """
        Begin the lines of whoever is known for the first time; those of who is gone make room.
        """
        begun = [key for key, value in shares.items() if value is not None]
        begun = [key for key in begun if key not in self._lines]
        gone = [key for key in self._lines if key not in shares]
        for key in gone[: max(len(self._lines) + len(begun) - MOST_LINES, 0)]:
            del self._lines[key]
        before = array("H", [_UNKNOWN]) * len(self._points)
        for key in begun[: max(MOST_LINES - len(self._lines), 0)]:
            self._lines[key] = before[:]


def _written(share: int | None) -> int:
    return _UNKNOWN if share is None else share
