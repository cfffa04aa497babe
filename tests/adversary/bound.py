"""
What a pod can take from its fenced neighbours before or without being evicted: the bound that
follows from the policy, for people who promise it and for searches that try to beat it.

Memory is taken where a pod holds more than its limit while others on the card are owed more than is
free. What no fence reaches has no bound: pods without an enforced limit, memory that belongs to no
pod, a pod that its owner deleted with an endless grace, and time in which nobody may be evicted
(the agent has just started, the API server or the driver is away).
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from agent.judge.time import ASKED_SECONDS
from agent.model.policy import Budgets
from gpufence.times import doubled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.model.policy import EvictionPolicy

HOUR: Final = 3600.0
LIST_SECONDS: Final = 10.0  # from one list of processes to the next, where the card's use is steady
DECIDED_SECONDS: Final = 5.0  # the last look and the API server's answer


def tolerated_bytes(policy: EvictionPolicy, limit_bytes: int) -> int:
    """Return what a pod may hold above its limit for ever."""
    return max(policy.evict_margin_bytes, limit_bytes * policy.evict_margin_percent // 100)


def seconds_over(
    policy: EvictionPolicy, excess_bytes: int, seconds: float = HOUR, *, slow_seconds: float = 0.0
) -> float:
    """
    Return for how long in so many seconds a pod can take so much, now and then, and not go.

    Its time fills a bucket that drains at half the speed meanwhile; the last drop spills over. That
    is the time between two lists: more than an interval where the driver is slow.
    """
    speed = policy.speed(excess_bytes)
    spilt = max(policy.interval_seconds, slow_seconds) * speed
    return min((policy.hold_seconds + spilt + seconds / 2) / (speed + 0.5), seconds)


def seconds_until_gone(
    policy: EvictionPolicy,
    excess_bytes: int,
    *,
    shielded: bool = True,
    borrowed: bool = False,
    list_seconds: float = LIST_SECONDS,
    slow_seconds: float = 0.0,
) -> float:
    """
    Return for how long a pod can take so much without a break until it is gone: seen, held,
    answered and ended; and, `shielded`, held up by others that leave and by disruption budgets,
    which is for ever where those are respected. What is `borrowed` is asked back first.
    """
    round_seconds = max(policy.interval_seconds, slow_seconds)
    seen = list_seconds + 3 * round_seconds
    held = policy.hold_seconds / policy.speed(excess_bytes) + round_seconds
    if borrowed:
        held = policy.give_back_seconds + round_seconds
    ended = max(policy.termination_seconds, float(policy.eviction_grace_seconds))
    seconds = seen + held + DECIDED_SECONDS + ended
    if not shielded:
        return seconds
    if policy.budgets is Budgets.RESPECT:
        return float("inf")
    first, most = policy.refused_backoff_seconds, policy.refused_backoff_limit_seconds
    waits = (doubled(first, most, count) for count in range(policy.refusals_before_delete - 1))
    return seconds + policy.termination_seconds + most + sum(waits)


def seconds_borrowed(
    policy: EvictionPolicy, seconds: float = HOUR, *, slow_seconds: float = 0.0
) -> float:
    """
    Return for how long in so many seconds a pod can keep what it borrows from others that miss it,
    now and then, and not go: until it is seen and nearly due, a minute later again.
    """
    round_seconds = max(policy.interval_seconds, slow_seconds)
    each = LIST_SECONDS + 3 * round_seconds + policy.give_back_seconds + round_seconds
    return min(each * ceil(seconds / (each + ASKED_SECONDS)), seconds)


def most_kept(
    policy: EvictionPolicy,
    excess_bytes: int,
    request_bytes: int,
    *,
    seconds: float = HOUR,
    gone: int = 0,
    slow_seconds: float = 0.0,
) -> float:
    """
    Return the most bytes x seconds of one card that a pod which borrows keeps from its lenders, if
    it holds so much above its request: until it is asked, and what it may have above its limit too.
    """
    margin = min(tolerated_bytes(policy, request_bytes), excess_bytes)
    kept = seconds_borrowed(policy, seconds, slow_seconds=slow_seconds)
    over = seconds_over(policy, margin, seconds, slow_seconds=slow_seconds)
    stays = margin * seconds + (excess_bytes - margin) * min(kept + over, seconds)
    until_gone = max(
        seconds_until_gone(policy, excess_bytes, borrowed=borrowed, slow_seconds=slow_seconds)
        for borrowed in (False, True)
    )
    return stays + (gone * excess_bytes * min(until_gone, seconds) if gone else 0.0)


def beyond_driver(limit_bytes: int, of_containers: Iterable[int]) -> int:
    """Return what a pod's containers, each held by the driver, can have above its limit in all."""
    return max(sum(of_containers) - limit_bytes, 0)


def most_taken(
    policy: EvictionPolicy,
    excess_bytes: int,
    limit_bytes: int,
    *,
    seconds: float = HOUR,
    gone: int = 0,
    slow_seconds: float = 0.0,
) -> float:
    """Return the most bytes x seconds of one card for a pod that stays and many that are `gone`."""
    margin = min(tolerated_bytes(policy, limit_bytes), excess_bytes)
    over = seconds_over(policy, excess_bytes, seconds, slow_seconds=slow_seconds)
    stays = excess_bytes * over + margin * (seconds - over)
    until_gone = seconds_until_gone(policy, excess_bytes, slow_seconds=slow_seconds)
    goes = excess_bytes * min(until_gone, seconds)
    return stays + (gone * goes if gone else 0.0)
