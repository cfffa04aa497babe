"""
Parts of a snapshot. Whoever asks thousands of agents asks each for the part he shows: an agent that
knows it says no more, an older one says everything, and the reader leaves the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from gpufence.shape import Object, objects
from gpufence.snapshot.rows import SnapshotPart

if TYPE_CHECKING:
    from collections.abc import Callable

_NOBODY: Final[Object] = {"injected": False, "terminating": False}
_PARTS: Final[frozenset[SnapshotPart]] = frozenset(get_args(SnapshotPart))


class SnapshotCut(NamedTuple):
    """
    What an agent is asked for, as `/v1/snapshot?only=NAME`, and what leaves that of all it says.
    """

    name: str
    leave: Callable[[Object], Object]

    @property
    def query(self) -> dict[str, str | int]:
        return {"only": self.name}


def _only(*parts: SnapshotPart) -> SnapshotCut:
    """Return what leaves of the lists these parts, the others being empty."""
    others: dict[str, object] = {part: [] for part in _PARTS - {*parts}}
    return SnapshotCut("-and-".join(parts), lambda written: {**written, **others})


def _outlines(written: Object) -> Object:
    """Leave the cards, and of the pods which are fenced and which are over their limits."""
    left = CARDS_AND_PODS.leave(written)
    pods = objects(left.get("pods"), "pods")
    return {**left, "pods": [{**_NOBODY, **_outline(pod)} for pod in pods]}


def _outline(pod: Object) -> Object:
    over = [use for use in objects(pod.get("uses"), "uses") if use.get("over")]
    return {"mode": pod.get("mode"), "uses": over}


CARD_ROWS: Final = _only("cards")
POD_ROWS: Final = _only("pods")
CARDS_AND_PODS: Final = _only("cards", "pods")
OUTLINES: Final = SnapshotCut("outlines", _outlines)
CUTS: Final = (CARD_ROWS, POD_ROWS, CARDS_AND_PODS, OUTLINES)
