"""
PURE. Pods on their way out: what they hold comes back by itself, for a while at least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.pod import PodsOnNode
    from agent.model.policy import Policy
    from agent.model.use import CardUse


def terminating_since(
    before: Mapping[str, float], pods: PodsOnNode, now: float, policy: Policy
) -> dict[str, float]:
    """
    Tell since when which pod is on its way out.

    An accepted eviction counts before the API server's word of it arrives; if that word never
    comes, the pod is an ordinary one again.
    """
    found: dict[str, float] = {}
    for uid, pod in pods.by_uid.items():
        since = before.get(uid)
        if pod.terminating:
            found[uid] = now if since is None else since
        elif since is not None and now - since < policy.termination_seconds:
            found[uid] = since
    return found


def holds_up(
    card: CardUse, pod_uid: str, terminating: Mapping[str, float], now: float, policy: Policy
) -> bool:
    """
    Tell whether another pod that is about to leave the card holds up a pod's eviction: what it
    gives back may end the shortage.
    """
    return bool(terminating) and any(
        uid != pod_uid
        and uid in terminating
        and now - terminating[uid] < policy.termination_seconds
        and use.used_bytes != 0
        for uid, use in card.pods.items()
    )
