"""
PURE. What became of an act, remembered for the ticks to come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.judge.brakes import recent
from agent.judge.offenders import offended
from agent.judge.refusals import refused
from agent.model.decision import Action, Answer
from agent.model.memory import Evicted

if TYPE_CHECKING:
    from agent.model.decision import ActResult, Verdict
    from agent.model.memory import Memory
    from agent.model.policy import Policy


def settle(
    memory: Memory, verdict: Verdict, result: ActResult, policy: Policy, now: float
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
        by_budget_while_short=result.answer is Answer.BLOCKED and verdict.short,
        after=result.after_seconds,
    )
    pods = {**memory.pods, verdict.pod.uid: replace(past, refusals=refusals)}
    return replace(memory, pods=pods)


def _accepted(memory: Memory, verdict: Verdict, policy: Policy, now: float) -> Memory:
    pod = verdict.pod
    evicted = (*recent(memory.evicted, now), Evicted(now, pod.namespace))
    if verdict.action is Action.KILL:
        return replace(memory, evicted=evicted)
    return replace(
        memory,
        evicted=evicted,
        terminating={**memory.terminating, pod.uid: memory.terminating.get(pod.uid, now)},
        offences=offended(memory.offences, pod.lineage, now, policy),
    )
