"""
PURE. How far over its limit a pod may be before it is said, and before it has to go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agent.model.policy import Policy
    from agent.model.use import PodUse


class Thresholds(NamedTuple):
    """
    In bytes; a pod is over when it holds more.
    """

    report: int
    evict: int
    short: int


def thresholds(limit_bytes: int, policy: Policy) -> Thresholds:
    relative = limit_bytes * policy.evict_margin_percent // 100
    return Thresholds(
        report=limit_bytes + policy.report_margin_bytes,
        evict=limit_bytes + max(policy.evict_margin_bytes, relative),
        short=limit_bytes + policy.short_margin_bytes,
    )


def is_over(use: PodUse, threshold: int) -> bool | None:
    """
    Tell whether a pod is over a threshold; None where the truth may lie on either side.

    Confirmed processes alone make it over, all processes together make it under.
    """
    if use.used_bytes is None or use.counted_bytes is None:
        return None
    if use.counted_bytes > threshold:
        return True
    return None if use.used_bytes > threshold else False
