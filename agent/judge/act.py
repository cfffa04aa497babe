"""
PURE. Around an act: the last look before it, in case that what made the pod go is true no longer,
and what became of it, remembered for the ticks to come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.judge.brakes import counted, recent
from agent.judge.reason import offended, refused
from agent.judge.standing import account_of, cures, shortage_of, standing
from agent.model.decision import Action, Answer
from gpufence.mode import Mode

if TYPE_CHECKING:
    from agent.model.decision import ActResult, Verdict
    from agent.model.memory import Memory, Refusals
    from agent.model.pod import PodOnNode
    from agent.model.policy import EvictionPolicy
    from agent.model.use import Observation


def objection(
    verdict: Verdict,
    observation: Observation,
    policy: EvictionPolicy,
    now: float,
    look_seconds: float = 0.0,
) -> str:
    """
    Return why an act must not be carried out after all; nothing if it must.

    The observation was made after the one that was judged, attributed with that one before it, in a
    look that took `look_seconds`.
    """
    pod = observation.pods.by_uid.get(verdict.pod.uid)
    if pod is None:
        return "the pod is gone"
    if not observation.pods.fresh:
        return "the API server is out of reach"
    card = observation.cards.get(verdict.uuid)
    gap = policy.gap_after(look_seconds)
    readable = card is not None and card.listed_at is not None and now - card.listed_at <= gap
    why = objection_of_pod(pod, verdict) or ("" if readable else "the card cannot be read")
    return why or _of_use(pod, verdict, observation, policy)


def objection_of_pod(pod: PodOnNode, verdict: Verdict) -> str:
    """Return the half of it that the pod alone tells, however newly it was read."""
    if pod.mode is not Mode.EVICT:
        return "its mode is not evict any more"
    if pod.exempt or not pod.enforced:
        return "it is exempt now"
    if pod.terminating and verdict.action is not Action.KILL:
        return "it is terminating by itself"
    too_large = verdict.use is not None and verdict.use.refusals.too_large
    if verdict.action is Action.KILL and not pod.terminating and not too_large:
        return "it is not terminating"
    return ""


def settle(
    memory: Memory, verdict: Verdict, result: ActResult, policy: EvictionPolicy, now: float
) -> Memory:
    """
    Remember the answer to one act.

    Accepted counts against the caps and the owner; anything that was asked in vain is not asked
    again at once. Only a budget's refusal counts towards overriding it.
    """
    if result.answer is Answer.CANCELLED:
        return memory
    if result.answer is Answer.ACCEPTED:
        memory = _accepted(memory, verdict, policy, now)
        if verdict.action is not Action.KILL:
            return memory
    past = memory.pods.get(verdict.pod.uid)
    if past is None:
        return memory
    refusals = refused(
        past.refusals,
        now,
        policy,
        by_budget_while_short=result.answer is Answer.BLOCKED and verdict.by_shortage,
        after=result.after_seconds,
        too_large=_is_too_large(verdict, result, past.refusals),
    )
    pods = {**memory.pods, verdict.pod.uid: replace(past, refusals=refusals)}
    return replace(memory, pods=pods)


def _is_too_large(verdict: Verdict, result: ActResult, before: Refusals) -> bool:
    """Return whether the API cannot end a pod; a kill of its processes tells nothing new."""
    if verdict.action is Action.KILL:
        return before.too_large
    return result.answer is Answer.TOO_LARGE


def _of_use(
    pod: PodOnNode, verdict: Verdict, observation: Observation, policy: EvictionPolicy
) -> str:
    card = observation.cards[verdict.uuid]
    use = card.pods.get(pod.uid)
    account = account_of(card, observation.pods, policy)
    use = None if use is None else standing(use, account, policy)
    if use is None or use.limit_bytes is None or use.mps:
        return "it holds nothing on the card that counts"
    if verdict.by_shortage:
        uses = [standing(item, account, policy) for item in card.pods.values() if item.pod.mode]
        (use,) = (item for item in uses if item.pod is pod)
        coming = [("", item.certain_bytes) for item in uses if item.pod.terminating]
        shortage = shortage_of(card, account, uses, coming=tuple(coming))
        if shortage.missing_bytes and (use.short_over or use.taking) and cures(use, shortage):
            return ""
        return "its eviction does not end a shortage any more"
    return "" if use.evict_over else "it is not over its limit any more"


def _accepted(memory: Memory, verdict: Verdict, policy: EvictionPolicy, now: float) -> Memory:
    pod = verdict.pod
    evicted = (*recent(memory.evicted, now), counted(verdict, now))
    if verdict.action is Action.KILL:
        return replace(memory, evicted=evicted)
    return replace(
        memory,
        evicted=evicted,
        terminating={**memory.terminating, pod.uid: memory.terminating.get(pod.uid, now)},
        offences=offended(memory.offences, pod.lineage, now, policy),
    )
