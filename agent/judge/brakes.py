"""
PURE. What stops evictions that are due: the guard against our own mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.model.decision import Brake

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent.judge.standing import Standing
    from agent.model.memory import Evicted
    from agent.model.policy import Policy

MINUTE = 60.0


def in_start_pause(started_at: float, at: float, policy: Policy) -> bool:
    return at < started_at + policy.start_pause_seconds


def too_many_at_once(standings: Iterable[Standing], policy: Policy) -> bool:
    """
    Tell whether more than half of the fenced pods that hold memory are over their limits, pods of
    several namespaces among them: then rather our limits are wrong than all of them.
    """
    holders: set[str] = set()
    violators: dict[str, str] = {}
    for standing in standings:
        holders.add(standing.pod.uid)
        if standing.report_over:
            violators[standing.pod.uid] = standing.pod.namespace
    spread = len(set(violators.values()))
    return spread >= policy.suspend_namespaces and 2 * len(violators) > len(holders)


def recent(evicted: Iterable[Evicted], now: float) -> tuple[Evicted, ...]:
    """
    Return the evictions of the last minute.
    """
    return tuple(item for item in evicted if now - item.at < MINUTE)


def cap_brake(
    evicted: Sequence[Evicted], namespace: str, now: float, policy: Policy
) -> Brake | None:
    """
    Tell whether the node or the namespace has had its evictions of the minute.
    """
    if not evicted:
        return None
    latest = recent(evicted, now)
    if len(latest) >= policy.node_evictions_per_minute:
        return Brake.NODE_CAP
    of_namespace = sum(1 for item in latest if item.namespace == namespace)
    if of_namespace >= policy.namespace_evictions_per_minute:
        return Brake.NAMESPACE_CAP
    return None
