"""
PURE. One tick: what is measured and what is remembered in, what is decided and remembered out; and
around an act the last look before it, and its answer, remembered for the ticks to come.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.judge.brakes import brake_of, chosen, counted, held_up, tick_of
from agent.judge.loans import lenders_of, lending_of
from agent.judge.reason import hold_seconds, offended, refused, verdict_on, within
from agent.judge.standing import (
    account_of,
    cures,
    finding,
    lasting,
    recalls,
    shortage_of,
    standing,
)
from agent.judge.time import carried
from agent.model.decision import Action, Answer, Brake, Decision, Outcome, Verdict
from agent.model.memory import EMPTY, NO_REFUSALS, NO_WATCH, Bucket, Memory, PodMemory
from agent.model.use import PodOnCard
from gpufence.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from agent.judge.brakes import Tick
    from agent.judge.standing import CardAccount
    from agent.model.decision import ActResult
    from agent.model.memory import Watch
    from agent.model.pod import PodOnNode
    from agent.model.policy import EvictionPolicy
    from agent.model.use import CardUse, Observation


def judge(
    observation: Observation,
    memory: Memory,
    policy: EvictionPolicy,
    now: float,
    outstanding: Sequence[Verdict] = (),
) -> tuple[Decision, Memory]:
    """
    Decide what happens to every fenced pod of the node, and why.

    `outstanding` are the acts that have not been answered. The result does not depend on any order.
    What cannot be known is never held against a pod.
    """
    pods, cards = observation.pods, observation.cards
    lenders = lenders_of(observation, memory, now) if pods.bursting else {}
    lent_by = lending_of(observation, lenders, memory, policy, now) if lenders else frozenset()
    accounts = {uuid: account_of(card, pods, policy, lent_by) for uuid, card in cards.items()}
    uses = _uses(observation, accounts, memory, policy)
    everyone = [use for of_pod in uses.values() for use in of_pod]
    tick = tick_of(observation, everyone, accounts, memory, policy, now, outstanding)
    verdicts, remembered = list[Verdict](), dict[str, PodMemory]()
    for uid, pod in pods.by_uid.items():
        if pod.mode is not None:
            of_pod, remembered[uid] = _judge_pod(pod, uses.get(uid, ()), observation, tick)
            verdicts += of_pod
    verdicts, acts = chosen(verdicts, uses, tick)
    nobodys, short = _troubles(cards, tick)
    suspects = {uuid for item in remembered.values() for uuid in item.watches}
    suspects |= {uuid for uuid, card in cards.items() if card.listed_at is None}
    findings = {
        uuid: finding(card, accounts[uuid], nobodys[uuid], short[uuid], tick, uuid in suspects)
        for uuid, card in cards.items()
    }
    awaited = [item.due_at for item in verdicts if item.pod.mode is Mode.EVICT]
    decision = Decision(
        at=now,
        verdicts=tuple(verdicts),
        acts=tuple(acts),
        brake=tick.node_brake or (Brake.SUSPENDED if tick.suspended else None),
        suspects=frozenset(suspects),
        findings=findings,
        suspensions=tuple(tick.suspended.values()),
        deadline=min(awaited, default=math.inf),
        lending=lent_by,
    )
    return decision, Memory(
        started_at=memory.started_at,
        pods=remembered,
        listed={uuid: at for uuid, at in memory.listed.items() if uuid in cards}
        | {uuid: cards[uuid].listed_at or 0.0 for uuid in tick.renewed},
        terminating=tick.terminating,
        evicted=tick.evicted,
        offences=memory.offences,
        unattributed={uuid: bucket for uuid, bucket in nobodys.items() if bucket is not EMPTY},
        held_up=held_up(memory.held_up, verdicts, tick),
        short={uuid: bucket for uuid, bucket in short.items() if bucket is not EMPTY},
        looks=tick.looks,
        judged={uuid: now - found.unjudged_seconds for uuid, found in findings.items()},
        lenders=lenders,
    )


def _troubles(
    cards: Mapping[str, CardUse], tick: Tick
) -> tuple[dict[str, Bucket], dict[str, Bucket]]:
    """
    Count for how long memory of each card has belonged to no pod, and how long the card has been
    short at the hands of what no eviction reaches.
    """
    memory, floor = tick.memory, tick.policy.unattributed_floor_bytes
    nobodys, short = dict[str, Bucket](), dict[str, Bucket]()
    for uuid, card in cards.items():
        held = card.unattributed_bytes
        over = None if held is None else held > floor
        nobodys[uuid] = lasting(memory.unattributed.get(uuid, EMPTY), card, tick, over=over)
        missing = tick.shortages.get(uuid)
        blamed = missing is not None and missing.cause is not None and missing.missing_bytes > floor
        short[uuid] = lasting(memory.short.get(uuid, EMPTY), card, tick, over=blamed)
    return nobodys, short


def _uses(
    observation: Observation,
    accounts: Mapping[str, CardAccount],
    memory: Memory,
    policy: EvictionPolicy,
) -> dict[str, list[PodOnCard]]:
    """
    Return what each fenced pod holds, by card, and how that stands against its limit.

    A card where its time is being counted belongs to it though it holds nothing there now: its
    buckets drain like any other's, and letting go for a second must not empty them.
    """
    cards = observation.cards
    uses: dict[str, list[PodOnCard]] = {}
    for uuid in sorted(cards):
        for uid, use in cards[uuid].pods.items():
            if use.pod.mode is not None:
                uses.setdefault(uid, []).append(standing(use, accounts[uuid], policy))
    for uid, past in memory.pods.items():
        pod = observation.pods.by_uid.get(uid)
        if not past.watches or pod is None or pod.mode is None or past.mode < pod.mode:
            continue
        for uuid in past.watches:
            if uuid in cards and uid not in cards[uuid].pods:
                nothing = None if cards[uuid].listed_at is None else 0
                left = PodOnCard(pod, cards[uuid].card, pod.limit_on(uuid), nothing, nothing)
                uses.setdefault(uid, []).append(standing(left, accounts[uuid], policy))
                uses[uid].sort(key=lambda use: use.card.uuid)
    return uses


def _judge_pod(
    pod: PodOnNode, uses: Sequence[PodOnCard], observation: Observation, tick: Tick
) -> tuple[list[Verdict], PodMemory]:
    """Judge a pod on each card, and remember it; any rise in mode starts every count from zero."""
    mode = pod.mode or Mode.OBSERVE
    past = tick.memory.pods.get(pod.uid)
    if past is None or past.mode < mode:
        past = PodMemory(mode)
    first_seen_at = past.first_seen_at
    if first_seen_at is None:
        first_seen_at = _first_seen(uses, observation)
    verdicts: list[Verdict] = [] if uses else [Verdict(pod, Outcome.IDLE)]
    watches: dict[str, Watch] = {}
    for use in uses:
        uuid = use.card.uuid
        untimed = use.limit_bytes is None or (use.report_over, use.recalled) == (False, False)
        if uuid not in past.watches and untimed:
            verdicts.append(_without_time(use, tick))
        else:
            card = observation.cards[uuid]
            since = tick.now if first_seen_at is None else first_seen_at
            counted = use._replace(
                grace_ends_at=since + tick.policy.grace_seconds,
                hold_seconds=hold_seconds(use, tick),
                refusals=past.refusals,
                brake=brake_of(use, tick),
            )
            watch = carried(past.watches.get(uuid, NO_WATCH), counted, card, tick)
            known = use.limit_bytes is not None
            counted = counted._replace(watch=watch)
            verdicts.append(
                verdict_on(counted, card, tick) if known else _without_time(counted, tick)
            )
            if watch is not NO_WATCH:
                watches[uuid] = watch
    if (watches, first_seen_at, mode) == (past.watches, past.first_seen_at, past.mode):
        return verdicts, past
    # Refusals are forgotten once nothing is held against a pod any more.
    refusals = past.refusals if watches else NO_REFUSALS
    return verdicts, PodMemory(mode, first_seen_at, refusals, watches)


def _without_time(use: PodOnCard, tick: Tick) -> Verdict:
    """Return the verdict on a pod against which no time counts now."""
    if use.limit_bytes is None and use.used_bytes != 0:
        return Verdict(use.pod, Outcome.UNDECLARED, use)
    return within(use, tick)


def _first_seen(uses: Sequence[PodOnCard], observation: Observation) -> float | None:
    """Return the pod's first sample with a process on any card."""
    times = (observation.cards[use.card.uuid].listed_at for use in uses if use.processes)
    return min((listed for listed in times if listed is not None), default=None)


def objection(
    verdict: Verdict,
    observation: Observation,
    policy: EvictionPolicy,
    now: float,
    look_seconds: float = 0.0,
    lending: Container[str] = (),
) -> str:
    """
    Return why an act must not be carried out after all; nothing if it must.

    The observation was made after the one that was judged, attributed with that one before it, in a
    look that took `look_seconds`. `lending` are the idle pods, as it was judged.
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
    return why or _of_use(pod, verdict, observation, policy, lending)


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
    killed = verdict.action is Action.KILL  # which tells nothing new of the API
    refusals = refused(
        past.refusals,
        now,
        policy,
        by_budget_while_short=result.answer is Answer.BLOCKED and verdict.by_shortage,
        after=result.after_seconds,
        too_large=past.refusals.too_large if killed else result.answer is Answer.TOO_LARGE,
    )
    pods = {**memory.pods, verdict.pod.uid: replace(past, refusals=refusals)}
    return replace(memory, pods=pods)


def _of_use(
    pod: PodOnNode,
    verdict: Verdict,
    observation: Observation,
    policy: EvictionPolicy,
    lending: Container[str],
) -> str:
    card = observation.cards[verdict.uuid]
    use = card.pods.get(pod.uid)
    account = account_of(card, observation.pods, policy, lending)
    use = None if use is None else standing(use, account, policy)
    if use is None or use.limit_bytes is None or use.mps:
        return "it holds nothing on the card that counts"
    if verdict.by_shortage:
        uses = [standing(item, account, policy) for item in card.pods.values() if item.pod.mode]
        (use,) = (item for item in uses if item.pod is pod)
        coming = [("", item.certain_bytes) for item in uses if item.pod.terminating]
        shortage = shortage_of(card, account, uses, coming=tuple(coming))
        if verdict.recalled and use.recalled and recalls(use, shortage):
            return ""
        if shortage.missing_bytes and (use.short_over or use.taking) and cures(use, shortage):
            return ""
        return "its eviction does not end a shortage any more"
    return "" if use.evict_over else "it is not over its limit any more"


def _accepted(memory: Memory, verdict: Verdict, policy: EvictionPolicy, now: float) -> Memory:
    pod = verdict.pod
    evicted = (*memory.evicted, counted(verdict, now))
    if verdict.action is Action.KILL:
        return replace(memory, evicted=evicted)
    # To borrow is no offence: a loan lengthens no hold.
    offences = memory.offences
    if not verdict.recalled:
        offences = offended(offences, pod.lineage, now, policy)
    since = memory.terminating.get(pod.uid, now)
    leaving = {**memory.terminating, pod.uid: since}
    return replace(memory, evicted=evicted, terminating=leaving, offences=offences)
