"""
PURE. Why a pod on a card is acted on or not: the first reason that holds, lasting ones first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.judge.bucket import is_due, missing_seconds
from agent.judge.grace import in_grace
from agent.judge.refusals import way_out
from agent.judge.shortage import would_cure
from agent.model.decision import Action, Outcome
from agent.model.policy import EvictWhen
from gpufence.mode import Mode

if TYPE_CHECKING:
    from agent.judge.standing import Standing
    from agent.judge.tick import Tick
    from agent.judge.watch import Terms
    from agent.model.decision import Brake
    from agent.model.memory import Refusals, Watch


@dataclass(frozen=True, slots=True)
class Reason:
    """
    `due_seconds` is the time over that is still missing, where time is all that is missing.
    """

    outcome: Outcome
    due_seconds: float | None = None
    by_shortage: bool = False
    brake: Brake | None = None
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """
    One pod on one card with all that is known about it.
    """

    standing: Standing
    watch: Watch
    terms: Terms
    refusals: Refusals
    brake: Brake | None


def reason(case: Case, tick: Tick) -> Reason:
    lasting = _no_violation(case) or _never(case, tick)
    if lasting is not None:
        return Reason(lasting)
    by_shortage = _due_by_shortage(case, tick)
    if by_shortage or _due_by_hold(case, tick):
        return _now(case, tick, by_shortage=by_shortage)
    return _not_yet(case, tick)


def _no_violation(case: Case) -> Outcome | None:
    standing = case.standing
    if standing.use.used_bytes is None:
        return Outcome.UNKNOWN
    if standing.report_over is None:
        return Outcome.UNCONFIRMED
    if not standing.report_over:
        return Outcome.WITHIN
    return None if standing.evict_over or standing.short_over else Outcome.TOLERATED


def _never(case: Case, tick: Tick) -> Outcome | None:
    pod, card = case.standing.pod, case.standing.card
    if pod.exempt:
        return Outcome.EXEMPT
    if not pod.enforced:
        return Outcome.NOT_ENFORCED
    if card.mps:
        return Outcome.MPS
    renewed = tick.is_new(card) and tick.is_fresh(card)
    return None if renewed else Outcome.NOT_RENEWED


def _due_by_shortage(case: Case, tick: Tick) -> bool:
    return is_due(case.watch.short, tick.policy.short_hold_seconds) and _may_cure(case, tick)


def _due_by_hold(case: Case, tick: Tick) -> bool:
    return (
        is_due(case.watch.hold, case.terms.hold_seconds)
        and case.standing.pod.injected
        and tick.policy.evict_when is EvictWhen.ALWAYS
        and not in_grace(case.terms.first_seen_at, tick.now, tick.policy)
    )


def _may_cure(case: Case, tick: Tick) -> bool:
    """
    Tell whether a pod may go for a shortage: one that the webhook never saw was told nothing, and
    goes only where that ends the shortage.
    """
    standing = case.standing
    excess = (standing.use.counted_bytes or 0) - standing.limit.limit_bytes
    return standing.pod.injected or would_cure(standing.card, excess, tick.policy)


def _not_yet(case: Case, tick: Tick) -> Reason:
    """
    Name what is missing on the shorter way out that is open.
    """
    policy = tick.policy
    if case.standing.short_over and _may_cure(case, tick):
        missing = missing_seconds(case.watch.short, policy.short_hold_seconds)
        return Reason(Outcome.HOLDING, missing, by_shortage=True)
    if not case.standing.pod.injected:
        return Reason(Outcome.UNINJECTED)
    if policy.evict_when is EvictWhen.SHORT:
        return Reason(Outcome.ONLY_WHEN_SHORT)
    missing = missing_seconds(case.watch.hold, case.terms.hold_seconds)
    if in_grace(case.terms.first_seen_at, tick.now, policy):
        rest = case.terms.first_seen_at + policy.grace_seconds - tick.now
        return Reason(Outcome.GRACE, rest + missing)
    return Reason(Outcome.HOLDING, missing)


def _now(case: Case, tick: Tick, *, by_shortage: bool) -> Reason:
    """
    Let a pod go whose time is up, unless it is going already or something stops it.
    """
    pod = case.standing.pod
    if pod.mode is not Mode.EVICT:
        return Reason(Outcome.WOULD_EVICT, by_shortage=by_shortage)
    since = tick.terminating.get(pod.uid)
    if since is not None and tick.now - since < tick.policy.termination_seconds:
        return Reason(Outcome.TERMINATING, by_shortage=by_shortage)
    stuck = since is not None
    action = way_out(pod, case.refusals, tick.policy, short=case.standing.short)
    if stuck:
        if not tick.policy.last_resort_kill or case.brake or tick.now < case.refusals.retry_at:
            return Reason(Outcome.STUCK, by_shortage=by_shortage, brake=case.brake)
        return Reason(Outcome.STUCK, by_shortage=by_shortage, action=Action.KILL)
    if case.brake is not None:
        return Reason(Outcome.BRAKED, by_shortage=by_shortage, brake=case.brake)
    if tick.now < case.refusals.retry_at:
        return Reason(Outcome.BACKING_OFF, case.refusals.retry_at - tick.now, by_shortage)
    return Reason(Outcome.EVICT, by_shortage=by_shortage, action=action)
