"""
PURE. Owners whose pods were evicted from this node before.

Eviction does not cure a workload that is too big for its limit: its next pod is back in a minute.
Each time it gets longer to be noticed by a person, and the node less churn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.model.memory import Offence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.memory import Lineage
    from agent.model.policy import Policy

MOST_REMEMBERED: Final = 1024
"""More owners than a node has seen in a day; the oldest are forgotten first."""


def hold_seconds(
    offences: Mapping[Lineage, Offence], lineage: Lineage, now: float, policy: Policy
) -> float:
    """
    Return how long a pod of this lineage must be over its limit.
    """
    offence = offences.get(lineage)
    ladder = policy.repeated_hold_seconds
    if offence is None or not ladder or now - offence.at > policy.repeated_memory_seconds:
        return policy.hold_seconds
    return max(ladder[min(offence.count, len(ladder)) - 1], policy.hold_seconds)


def offended(
    offences: Mapping[Lineage, Offence], lineage: Lineage, now: float, policy: Policy
) -> dict[Lineage, Offence]:
    """
    Remember one more eviction, forgetting those too old to matter.
    """
    kept = {
        key: item
        for key, item in offences.items()
        if now - item.at <= policy.repeated_memory_seconds
    }
    before = kept.pop(lineage, None)
    kept[lineage] = Offence(1 if before is None else before.count + 1, now)
    oldest_first = sorted(kept.items(), key=lambda pair: (pair[1].at, pair[0]))
    return dict(oldest_first[-MOST_REMEMBERED:])
