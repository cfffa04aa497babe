"""
PURE. What is worth saying about a card, whoever is to blame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.judge.bucket import Pour, is_due, pause, pour
from agent.model.decision import CardFinding

if TYPE_CHECKING:
    from agent.judge.tick import Tick
    from agent.model.memory import Bucket
    from agent.model.pod import PodsOnNode
    from agent.model.use import CardUse


def nobodys(past: Bucket, card: CardUse, tick: Tick) -> Bucket:
    """
    Count for how long a card holds memory of processes that belong to no pod.

    Nobody is evicted for it, so lists as far apart as they come are close enough.
    """
    if card.listed_at is None:
        return pause(past)
    if not tick.is_new(card):
        return past
    policy = tick.policy
    found = card.unattributed_bytes
    over = None if found is None else found > policy.unattributed_floor_bytes
    hold = policy.unattributed_hold_seconds
    return pour(past, Pour(card.listed_at, hold, gap_seconds=hold), over=over)


def finding(card: CardUse, bucket: Bucket, pods: PodsOnNode, tick: Tick) -> CardFinding:
    """
    Sum up a card: the limits of the pods on it, none counted as more than the card.
    """
    total = card.card.memory_bytes if card.memory is None else card.memory.total_bytes
    uuid = card.card.uuid
    known = (pods.by_uid[uid].limits.get(uuid) for uid in card.pods if uid in pods.by_uid)
    committed = sum(min(item.limit_bytes, total) for item in known if item is not None)
    due = is_due(bucket, tick.policy.unattributed_hold_seconds)
    return CardFinding(
        card=card,
        committed_bytes=committed,
        overcommitted=committed > total,
        unattributed_bytes=card.unattributed_bytes if due else None,
    )
