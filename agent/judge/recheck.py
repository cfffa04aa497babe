"""
PURE. The last look before the act, in case that what made the pod go is true no longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.judge.shortage import would_cure
from agent.judge.standing import stand
from agent.model.decision import Action
from gpufence.mode import Mode

if TYPE_CHECKING:
    from agent.judge.standing import Standing
    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode, PodsOnNode
    from agent.model.policy import Policy
    from agent.model.use import NodeUse


def objection(verdict: Verdict, use: NodeUse, pods: PodsOnNode, policy: Policy, now: float) -> str:
    """
    Return why an act must not be carried out after all; nothing if it must.

    `use` is a sample taken after the one that was judged, attributed with that one before it.
    """
    pod = pods.by_uid.get(verdict.pod.uid)
    if pod is None:
        return "the pod is gone"
    if not pods.fresh:
        return "the API server is out of reach"
    return objection_of_pod(pod, verdict) or _of_use(pod, verdict, use, policy, now)


def objection_of_pod(pod: PodOnNode, verdict: Verdict) -> str:
    """
    Return the half of it that the pod alone tells, however newly it was read.
    """
    if pod.mode is not Mode.EVICT:
        return "its mode is not evict any more"
    if pod.exempt or not pod.enforced:
        return "it is exempt now"
    if pod.terminating is not (verdict.action is Action.KILL):
        return "it is terminating by itself" if pod.terminating else "it is not terminating"
    return ""


def _of_use(pod: PodOnNode, verdict: Verdict, use: NodeUse, policy: Policy, now: float) -> str:
    uuid = "" if verdict.card is None else verdict.card.card.uuid
    card = use.cards.get(uuid)
    limit = pod.limits.get(uuid)
    if card is None or card.listed_at is None or now - card.listed_at > policy.gap_seconds:
        return "the card cannot be read"
    if limit is None or pod.uid not in card.pods or card.mps:
        return "it holds nothing on the card that counts"
    standing = stand(pod, card, card.pods[pod.uid], limit, policy)
    if verdict.by_shortage:
        return "" if _still_short(standing, policy) else "the card is not short any more"
    return "" if standing.evict_over else "it is not over its limit any more"


def _still_short(standing: Standing, policy: Policy) -> bool:
    excess = (standing.use.counted_bytes or 0) - standing.limit.limit_bytes
    curable = standing.pod.injected or would_cure(standing.card, excess, policy)
    return bool(standing.short_over) and curable
