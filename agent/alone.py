"""
The agent without a cluster: it measures and shows, and there is nobody to act on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.model.decision import ActResult, Answer
from agent.model.pod import pods_on_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.events import EventCreate, EventPatch
    from agent.model.decision import Verdict
    from agent.model.pod import PodsOnNode
    from gpufence.cards import NodeCards


class NoCluster:
    """
    Knows no pods, hence everybody's memory is nobody's.
    """

    def __init__(self) -> None:
        self._pods = pods_on_node((), fresh=False)

    def pods(self) -> PodsOnNode:
        return self._pods

    def publish(self, cards: NodeCards) -> None:
        del cards

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        del writes

    def carry_out(self, verdict: Verdict) -> ActResult:
        del verdict
        return ActResult(Answer.FAILED, detail="there is no cluster")
