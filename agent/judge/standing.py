"""
PURE. How a pod stands on one card in one sample, before any time is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent.judge.shortage import is_short
from agent.judge.thresholds import is_over, thresholds

if TYPE_CHECKING:
    from agent.model.pod import PodLimit, PodOnNode
    from agent.model.policy import Policy
    from agent.model.use import CardUse, PodUse


class Standing(NamedTuple):
    """
    Over each threshold or not; None where the sample does not say for certain.

    `short_over` is over the threshold of a short card, on a card that is short.
    """

    pod: PodOnNode
    card: CardUse
    use: PodUse
    limit: PodLimit
    report_over: bool | None
    evict_over: bool | None
    short_over: bool | None
    short: bool


def stand(pod: PodOnNode, card: CardUse, use: PodUse, limit: PodLimit, policy: Policy) -> Standing:
    short = is_short(card, pod.uid, policy)
    if use.used_bytes is not None and use.used_bytes <= limit.limit_bytes:
        over = False
        return Standing(pod, card, use, limit, over, over, over, bool(short))
    at = thresholds(limit.limit_bytes, policy)
    return Standing(
        pod=pod,
        card=card,
        use=use,
        limit=limit,
        report_over=is_over(use, at.report),
        evict_over=is_over(use, at.evict),
        short_over=is_over(use, at.short) if short else short,
        short=bool(short),
    )
