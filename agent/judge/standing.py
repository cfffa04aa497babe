"""
PURE. How a pod stands on one card in one sample, before any time is counted, and what is worth
saying about a card, a container or a process, whoever is to blame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.judge.time import Pour, is_due, pause, pour
from agent.model.decision import CardFinding, ContainerExcess, Ineffective

if TYPE_CHECKING:
    from agent.judge.brakes import Tick
    from agent.model.memory import Bucket
    from agent.model.pod import PodsOnNode
    from agent.model.policy import EvictionPolicy
    from agent.model.use import CardUse, PodOnCard


def standing(use: PodOnCard, card: CardUse, policy: EvictionPolicy) -> PodOnCard:
    """
    Fill in which thresholds a pod is over. A shortage matters only above the limit.
    """
    limit = use.limit_bytes
    if limit is None or (use.used_bytes is not None and use.used_bytes <= limit):
        return use
    relative = limit * policy.evict_margin_percent // 100
    short = is_short(card, use.pod.uid, policy)
    return use._replace(
        report_over=_is_over(use, limit + policy.report_margin_bytes),
        evict_over=_is_over(use, limit + max(policy.evict_margin_bytes, relative)),
        short_over=_is_over(use, limit + policy.short_margin_bytes) if short else short,
        short=bool(short),
    )


def is_short(card: CardUse, pod_uid: str, policy: EvictionPolicy) -> bool | None:
    """
    Return whether a card is short of memory at another pod's cost: nearly nothing is free, and not
    all of it is this pod's own doing to itself. None where the card does not say.

    Processes of no pod do not count as neighbours: they may be this pod's, unrecognised.
    """
    if card.memory is None:
        return None
    if card.memory.free_bytes >= policy.short_floor_bytes:
        return False
    return any(use.counted_bytes for uid, use in card.pods.items() if uid != pod_uid)


def may_go_for_shortage(use: PodOnCard, card: CardUse, policy: EvictionPolicy) -> bool:
    """
    Return whether a pod may go for a shortage: one that the webhook never saw was told nothing, and
    goes only where giving its excess back ends the shortage.
    """
    if use.pod.injected:
        return True
    free = None if card.memory is None else card.memory.free_bytes
    return free is not None and free + use.excess_bytes >= policy.short_floor_bytes


def containers_over(use: PodOnCard, policy: EvictionPolicy) -> tuple[ContainerExcess, ...]:
    """
    Name the containers over their part of the pod's limit: an event, never an eviction.
    """
    limit = use.pod.limits.get(use.card.uuid)
    parts = None if limit is None else limit.parts
    if not parts:
        return ()
    return tuple(
        ContainerExcess(name, used, parts[name])
        for name, used in sorted((use.containers or {}).items())
        if name in parts and used > parts[name] + policy.report_margin_bytes
    )


def ineffective_caps(use: PodOnCard, policy: EvictionPolicy) -> tuple[Ineffective, ...]:
    """
    Name the processes above what their framework was told, its context and some slack.
    """
    caps = use.pod.caps
    if not caps:
        return ()
    above = []
    for process in use.processes:
        cap = caps.get(process.container)
        if cap is None or process.used_bytes is None or not process.confirmed:
            continue
        allowed = cap.cap_bytes + cap.reserve_bytes
        if process.used_bytes > allowed + policy.cap_slack_bytes:
            above.append(Ineffective(process.container, process.pid, process.used_bytes, allowed))
    return tuple(above)


def unattributed(past: Bucket, card: CardUse, tick: Tick) -> Bucket:
    """
    Count for how long a card holds memory of processes that belong to no pod.

    Nobody is evicted for it, so lists as far apart as they come are close enough.
    """
    if card.listed_at is None:
        return pause(past)
    if card.card.uuid not in tick.renewed:
        return past
    policy = tick.policy
    used = card.unattributed_bytes
    over = None if used is None else used > policy.unattributed_floor_bytes
    hold = policy.unattributed_hold_seconds
    return pour(past, Pour(card.listed_at, hold, gap_seconds=hold), over=over)


def finding(card: CardUse, bucket: Bucket, pods: PodsOnNode, policy: EvictionPolicy) -> CardFinding:
    """
    Sum up a card: the limits of the pods on it, none counted as more than the card.
    """
    total = card.card.memory_bytes if card.memory is None else card.memory.total_bytes
    committed = 0
    for uid, use in card.pods.items():
        limit = use.limit_bytes if uid in pods.by_uid else None
        if limit is not None:
            committed += min(limit, total)
    due = is_due(bucket, policy.unattributed_hold_seconds)
    return CardFinding(
        card=card,
        committed_bytes=committed,
        overcommitted=committed > total,
        unattributed_bytes=card.unattributed_bytes if due else None,
    )


def _is_over(use: PodOnCard, threshold: int) -> bool | None:
    """
    Return whether a pod is over a threshold; None where the truth may lie on either side.

    Confirmed processes alone make it over, all processes together make it under.
    """
    if use.used_bytes is None or use.counted_bytes is None:
        return None
    if use.counted_bytes > threshold:
        return True
    return None if use.used_bytes > threshold else False
