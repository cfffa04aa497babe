"""Owners whose pods are evicted again and again: eviction does not cure what is too large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from agent.concern import Concern
from agent.model.decision import Answer
from service.exposition import Family

if TYPE_CHECKING:
    from agent.concern import Ground
    from agent.model.pod import PodOnNode
    from agent.model.state import TickResult

HOUR_SECONDS: Final = 3600.0
MOST_EVICTED: Final = 256
"""Pods of one node that are remembered; the brakes let fewer go within an hour."""


@dataclass(frozen=True, slots=True)
class RepeatedPolicy:
    """There is nothing to set."""


class PastEviction(NamedTuple):
    namespace: str
    owner: str
    at: float


class RepeatedConcern(Concern):
    """Remembers for an hour which owner's pods were evicted on this node."""

    name = "repeated"
    title = "Repeated evictions"
    settings = RepeatedPolicy

    def __init__(self) -> None:
        self._evicted: dict[str, PastEviction] = {}

    @classmethod
    def on(cls, ground: Ground, settings: RepeatedPolicy) -> Self:
        del ground, settings
        return cls()

    def look(self, tick: TickResult) -> None:
        now = tick.decision.at
        new = {
            act.verdict.pod.uid: PastEviction(
                act.verdict.pod.namespace, _owner(act.verdict.pod), now
            )
            for act in tick.acts
            if act.result.answer is Answer.ACCEPTED
        }
        # A pod that is evicted and then killed, since it does not end, is one.
        kept = {**new, **_within_the_hour(self._evicted, now)}
        latest = sorted(kept.items(), key=lambda item: item[1].at)[-MOST_EVICTED:]
        self._evicted = dict(latest)

    def families(self, last: TickResult | None, now: float) -> list[Family]:
        del last
        counts: dict[tuple[str, str], int] = {}
        for each in _within_the_hour(self._evicted, now).values():
            place = each.namespace, each.owner
            counts[place] = counts.get(place, 0) + 1
        rows = (
            ({"namespace": namespace, "owner": owner}, float(count))
            for (namespace, owner), count in sorted(counts.items())
        )
        text = "Pods of an owner that this node has evicted within the last hour"
        return [Family("gpufence_owner_evicted_pods", "gauge", text, tuple(rows))]


def _owner(pod: PodOnNode) -> str:
    """Return what makes the next pod; nothing makes another one of a pod alone."""
    made_by = pod.controller
    return f"Pod/{pod.name}" if made_by is None else f"{made_by.kind}/{made_by.name}"


def _within_the_hour(evicted: dict[str, PastEviction], now: float) -> dict[str, PastEviction]:
    return {uid: each for uid, each in evicted.items() if now - each.at <= HOUR_SECONDS}
