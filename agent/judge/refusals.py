"""
PURE. Evictions that the API server refused: when to ask again, and when to stop asking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.model.decision import Action
from agent.model.memory import Refusals
from agent.model.policy import Budgets
from gpufence.backoff import doubled

if TYPE_CHECKING:
    from agent.model.pod import PodOnNode
    from agent.model.policy import Policy


def way_out(pod: PodOnNode, refusals: Refusals, policy: Policy, *, short: bool) -> Action:
    """
    Choose how a pod is made to go.

    A budget shields availability, not the theft of a neighbour's memory: after enough refusals on a
    short card the pod is deleted. A Job's pod is deleted too, since an eviction would not count
    against its backoffLimit and it would come back for ever.
    """
    shielded = refusals.while_short >= policy.refusals_before_delete
    if short and shielded and policy.budgets is Budgets.OVERRIDE:
        return Action.DELETE
    return Action.EVICT_JOB if pod.of_job else Action.EVICT


def refused(
    before: Refusals, now: float, policy: Policy, *, by_budget_while_short: bool, after: float = 0.0
) -> Refusals:
    """
    Count a refusal and wait for twice as long as after the one before, or for `after` seconds if
    the API server asks for more.

    The refusal after which the pod is to be deleted needs no wait: deleting is another request.
    """
    usual = doubled(
        policy.refused_backoff_seconds, policy.refused_backoff_limit_seconds, before.count
    )
    wait = max(usual, after)
    while_short = before.while_short + (1 if by_budget_while_short else 0)
    last = by_budget_while_short and while_short == policy.refusals_before_delete
    overridden = last and policy.budgets is Budgets.OVERRIDE
    return Refusals(before.count + 1, while_short, now if overridden else now + wait)
