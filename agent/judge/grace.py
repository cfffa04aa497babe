"""
PURE. The peace a pod has while it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.model.policy import Policy


def in_grace(first_seen_at: float, at: float, policy: Policy) -> bool:
    """
    Tell whether a moment lies in the start-up grace of a pod first seen then.

    It ends once for the pod: what restarts in it has had its grace.
    """
    return at < first_seen_at + policy.grace_seconds
