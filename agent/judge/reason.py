"""PURE. Why a pod on a card is acted on or not: the first reason that holds, lasting ones first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from agent.judge.brakes import brake_of_shortage
from agent.judge.standing import containers_over, cures, ineffective_caps, recalls
from agent.judge.time import is_due
from agent.model.decision import Action, Outcome, Verdict
from agent.model.memory import Offence, Refusals
from agent.model.policy import Budgets, EvictWhen
from gpufence.mode import Mode
from gpufence.times import doubled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.judge.brakes import Tick
    from agent.model.decision import Shortage
    from agent.model.memory import Lineage
    from agent.model.policy import EvictionPolicy
    from agent.model.use import CardUse, PodOnCard

MOST_REMEMBERED: Final = 1024
"""More owners than a node has seen in a day; the oldest are forgotten first."""


def within(use: PodOnCard, tick: Tick) -> Verdict:
    """Return the verdict on a pod within its limit, with all that is worth saying of any pod."""
    since = use.watch.report.since
    return Verdict(
        pod=use.pod,
        outcome=Outcome.BORROWING if use.borrowed_bytes else Outcome.WITHIN,
        use=use,
        over_seconds=tick.now - since if use.report_over and since is not None else 0.0,
        containers_over=containers_over(use, tick.policy),
        ineffective=ineffective_caps(use, tick.policy),
        told_larger_bytes=use.pod.told_larger.get(use.card.uuid) if use.processes else None,
    )


def verdict_on(use: PodOnCard, card: CardUse, tick: Tick) -> Verdict:
    """Return the verdict on a pod whose time over its thresholds has been counted."""
    verdict = within(use, tick)
    shortage = tick.shortages.get(card.card.uuid)
    curing = shortage is not None and cures(use, shortage)
    lasting = _lasting(use, card, tick, curing=curing)
    if lasting is not None:
        return verdict if lasting is Outcome.WITHIN else verdict._replace(outcome=lasting)
    if use.recalled and shortage is not None:
        asked = _asked_back(verdict, use, shortage, tick)
        if not use.evict_over or asked.outcome is not Outcome.RECALLED:
            return asked
    policy, watch = tick.policy, use.watch
    by_hold = (
        is_due(watch.hold, use.hold_seconds)
        and (use.pod.injected or use.pod.unasked)
        and not (use.pod.told_elsewhere and use.keeps_elsewhere)
        and policy.evict_when is EvictWhen.ALWAYS
        and tick.now >= use.grace_ends_at
    )
    if shortage is not None and curing:
        short = is_due(watch.short, policy.short_hold_seconds)
        if short or is_due(watch.taking, policy.hold_seconds):
            brake = brake_of_shortage(use, shortage, tick)
            if brake is None or not by_hold or use.brake is not None:
                verdict = verdict._replace(by_shortage=True)
                return _now(verdict, use._replace(brake=brake), tick)
    if by_hold:
        return _now(verdict, use, tick)
    return _not_yet(verdict, use, tick, curing=curing)


def hold_seconds(use: PodOnCard, tick: Tick) -> float:
    """
    Return how long a pod must be over its limit; its own eviction must not make it harmless again.

    Eviction does not cure a workload that is too big for its limit: its next pod is back in a
    minute. Each time it gets longer to be noticed by a person, and the node less churn.
    """
    policy = tick.policy
    ladder = policy.repeated_hold_seconds
    offence = tick.memory.offences.get(use.pod.lineage)
    if offence is None or not ladder or use.pod.uid in tick.terminating:
        return policy.hold_seconds
    if tick.now - offence.at > policy.repeated_memory_seconds:
        return policy.hold_seconds
    return max(ladder[min(offence.count, len(ladder)) - 1], policy.hold_seconds)


def offended(
    offences: Mapping[Lineage, Offence], lineage: Lineage, now: float, policy: EvictionPolicy
) -> dict[Lineage, Offence]:
    """Remember one more eviction, forgetting those too old to matter."""
    kept = {
        key: item
        for key, item in offences.items()
        if now - item.at <= policy.repeated_memory_seconds
    }
    before = kept.pop(lineage, None)
    kept[lineage] = Offence(1 if before is None else before.count + 1, now)
    oldest_first = sorted(kept.items(), key=lambda pair: (pair[1].at, pair[0]))
    return dict(oldest_first[-MOST_REMEMBERED:])


def refused(
    before: Refusals,
    now: float,
    policy: EvictionPolicy,
    *,
    by_budget_while_short: bool,
    after: float = 0.0,
    too_large: bool = False,
) -> Refusals:
    """
    Count a refusal and wait for twice as long as after the one before, or for `after` seconds if
    the API server asks for more.

    The refusal after which the pod is to be deleted, or killed since it is `too_large`, needs no
    wait: that is another request.
    """
    first, limit = policy.refused_backoff_seconds, policy.refused_backoff_limit_seconds
    before_it = before.while_short if by_budget_while_short else before.count
    wait = max(doubled(first, limit, before_it), after)
    while_short = before.while_short + (1 if by_budget_while_short else 0)
    last = by_budget_while_short and while_short == policy.refusals_before_delete
    overridden = last and policy.budgets is Budgets.OVERRIDE
    killed = too_large and not before.too_large and policy.last_resort_kill
    retry_at = now if overridden or killed else now + wait
    return Refusals(before.count + 1, while_short, retry_at, too_large)


def _lasting(use: PodOnCard, card: CardUse, tick: Tick, *, curing: bool) -> Outcome | None:
    """Return why no time can bring about the eviction of a pod, or None if it can."""
    if use.report_over is False and not use.recalled:
        return Outcome.WITHIN
    if not use.evict_over and not (use.short_over and curing) and not use.recalled:
        if use.report_over and use.evict_over is False:
            return Outcome.TOLERATED
        return Outcome.UNKNOWN if use.used_bytes is None else Outcome.UNCONFIRMED
    if use.pod.exempt:
        return Outcome.EXEMPT
    if not use.pod.enforced:
        return Outcome.NOT_ENFORCED
    if use.mps:
        return Outcome.MPS
    at = card.listed_at if card.card.uuid in tick.renewed else None
    fresh = at is not None and tick.now - at <= tick.looks.gap_seconds
    return None if fresh else Outcome.NOT_RENEWED


def _asked_back(verdict: Verdict, use: PodOnCard, shortage: Shortage, tick: Tick) -> Verdict:
    """Say when a pod has to go that borrows what others miss, if its going gives that back."""
    bucket, hold = use.watch.recall, tick.policy.give_back_seconds
    verdict = verdict._replace(outcome=Outcome.RECALLED, recalled=True)
    if not recalls(use, shortage):
        return verdict
    if is_due(bucket, hold):
        brake = brake_of_shortage(use, shortage, tick)
        return _now(verdict._replace(by_shortage=True), use._replace(brake=brake), tick)
    missing = max(hold - bucket.level_seconds, 0.0)
    due_at = bucket.at + missing if tick.node_brake is None else math.inf
    return verdict._replace(due_seconds=missing, due_at=due_at)


def _not_yet(verdict: Verdict, use: PodOnCard, tick: Tick, *, curing: bool) -> Verdict:
    """Name what is missing on the shorter way out that is open."""
    policy, watch = tick.policy, use.watch
    if curing and (use.short_over or use.taking):
        seconds = [policy.short_hold_seconds - watch.short.level_seconds] if use.short_over else []
        if use.taking:
            seconds.append((policy.hold_seconds - watch.taking.level_seconds) / use.speed)
        missing = max(min(seconds), 0.0)
        counts = tick.node_brake is None
        due_at = max(watch.short.at, watch.taking.at) + missing if counts else math.inf
        verdict = verdict._replace(due_at=due_at, by_shortage=True)
        return verdict._replace(outcome=Outcome.HOLDING, due_seconds=missing)
    if not (use.pod.injected or use.pod.unasked):
        return verdict._replace(outcome=Outcome.UNINJECTED)
    if use.pod.told_elsewhere and use.keeps_elsewhere:
        return verdict._replace(outcome=Outcome.OTHER_CARD)
    if policy.evict_when is EvictWhen.SHORT:
        return verdict._replace(outcome=Outcome.ONLY_WHEN_SHORT)
    missing = max(use.hold_seconds - watch.hold.level_seconds, 0.0) / use.speed
    if tick.now < use.grace_ends_at:
        verdict = verdict._replace(due_at=use.grace_ends_at)
        rest = use.grace_ends_at - tick.now
        return verdict._replace(outcome=Outcome.GRACE, due_seconds=rest + missing)
    due_at = watch.hold.at + missing if use.brake is None else math.inf
    return verdict._replace(outcome=Outcome.HOLDING, due_seconds=missing, due_at=due_at)


def _now(verdict: Verdict, use: PodOnCard, tick: Tick) -> Verdict:
    """Let a pod go whose time is up, unless it is going already or something stops it."""
    if use.pod.mode is not Mode.EVICT:
        return verdict._replace(outcome=Outcome.WOULD_EVICT)
    since = tick.terminating.get(use.pod.uid)
    wait = use.refusals.retry_at - tick.now
    too_large = use.refusals.too_large and (wait > 0 or tick.policy.last_resort_kill)
    if since is not None and tick.now - since < tick.policy.termination_seconds:
        return verdict._replace(outcome=Outcome.TERMINATING)
    if since is not None or too_large:
        kill = tick.policy.last_resort_kill and use.brake is None and wait <= 0
        action, brake = (Action.KILL, None) if kill else (None, use.brake)
        return verdict._replace(outcome=Outcome.STUCK, brake=brake, action=action)
    if use.brake is not None:
        return verdict._replace(outcome=Outcome.BRAKED, brake=use.brake)
    if wait > 0:
        verdict = verdict._replace(due_at=use.refusals.retry_at)
        return verdict._replace(outcome=Outcome.BACKING_OFF, due_seconds=wait)
    return verdict._replace(outcome=Outcome.EVICT, action=_way_out(verdict, use, tick.policy))


def _way_out(verdict: Verdict, use: PodOnCard, policy: EvictionPolicy) -> Action:
    """
    Choose how a pod is made to go.

    A budget shields availability, not the theft of a neighbour's memory: after enough refusals on a
    short card the pod is deleted. A Job's pod is deleted too, since an eviction would not count
    against its backoffLimit and it would come back for ever.
    """
    shielded = use.refusals.while_short >= policy.refusals_before_delete
    if verdict.by_shortage and shielded and policy.budgets is Budgets.OVERRIDE:
        return Action.DELETE
    return Action.EVICT_JOB if use.pod.of_job else Action.EVICT
