"""
PURE. What holds for every pod of one tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.judge.brakes import cap_brake, in_start_pause, too_many_at_once
from agent.judge.terminating import holds_up, terminating_since
from agent.model.decision import Brake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent.judge.standing import Standing
    from agent.model.memory import Memory
    from agent.model.pod import PodsOnNode
    from agent.model.policy import Policy
    from agent.model.use import CardUse


@dataclass(frozen=True, slots=True)
class Tick:
    """
    `node_brake` stops every eviction; START has its own way of not counting time.
    """

    now: float
    policy: Policy
    memory: Memory
    terminating: Mapping[str, float]
    node_brake: Brake | None

    def is_new(self, card: CardUse) -> bool:
        """
        Tell whether a card's list of processes has not been judged before.
        """
        listed = card.listed_at
        return listed is not None and listed > self.memory.listed.get(card.card.uuid, -1.0)

    def is_fresh(self, card: CardUse) -> bool:
        """
        Tell whether a list is recent enough to act on.
        """
        listed = card.listed_at
        return listed is not None and self.now - listed <= self.policy.gap_seconds

    def brake(self, standing: Standing) -> Brake | None:
        """
        Return what stops the eviction of a pod, before anybody is chosen in this tick.
        """
        if self.node_brake is not None:
            return self.node_brake
        uid = standing.pod.uid
        if holds_up(standing.card, uid, self.terminating, self.now, self.policy):
            return Brake.TERMINATING
        return cap_brake(self.memory.evicted, standing.pod.namespace, self.now, self.policy)


def tick_of(
    standings: Sequence[Standing], pods: PodsOnNode, memory: Memory, policy: Policy, now: float
) -> Tick:
    terminating = terminating_since(memory.terminating, pods, now, policy)
    brake = None
    if in_start_pause(memory.started_at, now, policy):
        brake = Brake.START
    elif not pods.fresh:
        brake = Brake.STALE_PODS
    elif too_many_at_once(standings, policy):
        brake = Brake.SUSPENDED
    return Tick(now, policy, memory, terminating, brake)
