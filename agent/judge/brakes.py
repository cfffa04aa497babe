"""
PURE. What stops evictions that are due, and who goes first: the guard against our own mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.judge.standing import can_go, shortage_of
from agent.judge.time import LIST_GAP_SECONDS, BucketRules, looks_of, pour
from agent.model.decision import Brake, Outcome, Suspension
from agent.model.memory import EMPTY, Evicted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent.judge.standing import CardAccount
    from agent.model.decision import Shortage, Verdict
    from agent.model.memory import Bucket, Looks, Memory
    from agent.model.pod import PodsOnNode
    from agent.model.policy import EvictionPolicy
    from agent.model.use import Observation, PodOnCard

MINUTE: Final = 60.0
HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Tick:
    """
    What holds for every pod of one tick.

    `renewed` are the cards whose list of processes has not been judged before, `evicted` the
    evictions of the last minute. `node_brake` stops every eviction; START has its own way of not
    counting time. `suspended` are measures, for whose pods the ordinary evictions are. `shortages`
    are those of the cards that have one. `looks` is how looks follow each other, `list_gaps` how
    far from the last list of a card another one may be for the time between to count.
    `outstanding` are the acts that have not been answered.
    """

    now: float
    policy: EvictionPolicy
    memory: Memory
    start_ends_at: float
    renewed: frozenset[str]
    terminating: Mapping[str, float]
    evicted: tuple[Evicted, ...]
    node_brake: Brake | None
    suspended: Mapping[str, Suspension]
    shortages: Mapping[str, Shortage]
    looks: Looks
    list_gaps: Mapping[str, float]
    outstanding: Sequence[Verdict] = ()


def tick_of(
    observation: Observation,
    uses: Sequence[PodOnCard],
    accounts: Mapping[str, CardAccount],
    memory: Memory,
    policy: EvictionPolicy,
    now: float,
    outstanding: Sequence[Verdict] = (),
) -> Tick:
    """
    Find out what holds for every pod, given how all of them stand, and the account of each card.
    """
    brake = None
    start_ends_at = memory.started_at + policy.start_pause_seconds
    if now < start_ends_at:
        brake = Brake.START
    elif not observation.pods.fresh:
        brake = Brake.STALE_PODS
    terminating = _terminating_since(memory.terminating, observation.pods, now, policy)
    evicted = tuple(item for item in memory.evicted if now - item.at < MINUTE)
    looks = looks_of(memory.looks, observation.sample.taken_at, now, policy)
    short = {uuid: item for uuid, item in accounts.items() if item.missing_bytes}
    return Tick(
        now=now,
        policy=policy,
        memory=memory,
        start_ends_at=start_ends_at,
        renewed=frozenset(
            uuid
            for uuid, card in observation.cards.items()
            if card.listed_at is not None and card.listed_at > memory.listed.get(uuid, -1.0)
        ),
        terminating=terminating,
        evicted=evicted,
        node_brake=brake,
        suspended=_suspended(uses, memory, policy, now),
        shortages={
            uuid: found
            for uuid, account in short.items()
            if (
                found := shortage_of(
                    observation.cards[uuid],
                    account,
                    [use for use in uses if use.card.uuid == uuid],
                    terminating,
                    _coming(observation, uuid, terminating, evicted, policy, now),
                )
            ).missing_bytes
        },
        looks=looks,
        list_gaps={
            uuid: max(looks.gap_seconds, LIST_GAP_SECONDS)
            if at >= looks.unbroken_since - looks.gap_seconds
            else looks.gap_seconds
            for uuid, at in memory.listed.items()
        },
        outstanding=outstanding,
    )


def brake_of(use: PodOnCard, tick: Tick) -> Brake | None:
    """Return what stops the eviction of a pod that hurts nobody now, before anybody is chosen."""
    if tick.node_brake is not None:
        return tick.node_brake
    if use.pod.measure in tick.suspended:
        return Brake.SUSPENDED
    return _cap_brake(tick.evicted, use.pod.namespace, "", tick.policy)


def brake_of_shortage(use: PodOnCard, shortage: Shortage, tick: Tick) -> Brake | None:
    """
    Return what stops the eviction of a pod that ends a shortage.

    What others on their way out give back may end it as well, for a while: nobody may send one
    after the other to hold up the eviction of one who stays. The pods of a namespace do not cover
    each other, unless we have evicted them ourselves.
    """
    if tick.node_brake is not None:
        return tick.node_brake
    uuid, namespace = use.card.uuid, use.pod.namespace
    waited = tick.memory.held_up.get(uuid, EMPTY)
    spent = waited.level_seconds + (tick.now - waited.at if waited.over else 0.0)
    coming = sum(freed for whose, freed in shortage.coming if whose != namespace)
    harmless = not use.evict_over and not use.recalled
    may_wait = harmless or spent < tick.policy.termination_seconds
    if coming >= shortage.missing_bytes and may_wait:
        return Brake.TERMINATING
    return _cap_brake(tick.evicted, namespace, uuid, tick.policy)


def held_up(
    past: Mapping[str, Bucket], verdicts: Iterable[Verdict], tick: Tick
) -> dict[str, Bucket]:
    """Remember for how long leaving pods have held up others on each card; forgotten in an hour."""
    policy = tick.policy
    most = policy.termination_seconds
    now = {item.uuid for item in verdicts if item.brake is Brake.TERMINATING}
    if not now and not past:
        return {}
    rules = BucketRules(tick.now, most, HOUR, drain=most / HOUR)
    poured = {
        uuid: pour(past.get(uuid, EMPTY), rules, over=uuid in now) for uuid in now | past.keys()
    }
    return {uuid: bucket for uuid, bucket in poured.items() if bucket is not EMPTY}


def chosen(
    verdicts: list[Verdict], uses: Mapping[str, Sequence[PodOnCard]], tick: Tick
) -> tuple[list[Verdict], list[Verdict]]:
    """
    Return all verdicts with those that must wait turned into such, and the ones to carry out: the
    worst excess first, one pod for each card and pass, within the caps.

    Going, a pod frees all cards it holds memory on, so that nobody else on any of them goes in the
    same pass, nor before the answer to an act that is under way.
    """
    due = [(index, item) for index, item in enumerate(verdicts) if item.action is not None]
    if not due:
        return verdicts, []
    evicted = [*tick.evicted]
    evicted += [counted(item, tick.now) for item in tick.outstanding]
    acting = {item.pod.uid for item in tick.outstanding}
    taken = {use.card.uuid for uid in acting for use in uses.get(uid, ())}
    taken.update(item.uuid for item in tick.outstanding)
    settled: dict[int, Verdict] = {}
    acts: list[Verdict] = []
    for index, verdict in sorted(due, key=lambda pair: _rank(pair[1])):
        pod = verdict.pod
        if pod.uid in acting:
            continue
        cards = {use.card.uuid for use in uses[pod.uid]}
        short = verdict.uuid if verdict.by_shortage else ""
        brake = _cap_brake(evicted, pod.namespace, short, tick.policy)
        if not taken.isdisjoint(cards):
            settled[index] = verdict._replace(outcome=_waiting(verdict), action=None)
        elif brake is not None:
            outcome = _waiting(verdict, Outcome.BRAKED)
            settled[index] = verdict._replace(outcome=outcome, action=None, brake=brake)
        else:
            taken.update(cards)
            evicted.append(counted(verdict, tick.now))
            acts.append(verdict)
    return [settled.get(index, item) for index, item in enumerate(verdicts)], acts


def counted(verdict: Verdict, now: float) -> Evicted:
    """Return an eviction as the caps count it."""
    card = verdict.uuid if verdict.by_shortage else ""
    return Evicted(now, verdict.pod.namespace, card, verdict.pod.uid)


def _suspended(
    uses: Sequence[PodOnCard], memory: Memory, policy: EvictionPolicy, now: float
) -> dict[str, Suspension]:
    """
    Return the measures by which more than half of the pods that could go are over their limits for
    evictions, pods of several namespaces among them: then rather the measure is wrong than they.
    Pods that ask for no GPU have no measure; where they may hold nothing, all that hold are over.
    """
    violators: dict[str, dict[str, str]] = {}
    for use in uses:
        pod = use.pod
        if use.evict_over and can_go(use) and not pod.unasked:
            past = memory.pods.get(pod.uid)
            since = None if past is None or past.mode is not pod.mode else past.first_seen_at
            if since is not None and since + policy.grace_seconds <= now:
                violators.setdefault(pod.measure, {})[pod.uid] = pod.namespace
    suspended: dict[str, Suspension] = {}
    for measure, namespaces in violators.items():
        if len(set(namespaces.values())) < policy.suspend_namespaces:
            continue
        holders = {use.pod.uid for use in uses if use.pod.measure == measure and can_go(use)}
        if 2 * len(namespaces) > len(holders):
            suspended[measure] = Suspension(measure, len(namespaces), len(holders))
    return suspended


def _terminating_since(
    before: Mapping[str, float], pods: PodsOnNode, now: float, policy: EvictionPolicy
) -> dict[str, float]:
    """
    Return since when which pod is on its way out.

    An accepted eviction counts before the API server's word of it arrives; if that word never
    comes, the pod is an ordinary one again.
    """
    leaving: dict[str, float] = {}
    for uid, pod in pods.by_uid.items():
        since = before.get(uid)
        if pod.terminating:
            leaving[uid] = now if since is None else since
        elif since is not None and now - since < policy.termination_seconds:
            leaving[uid] = since
    return leaving


def _coming(
    observation: Observation,
    uuid: str,
    terminating: Mapping[str, float],
    evicted: Sequence[Evicted],
    policy: EvictionPolicy,
    now: float,
) -> tuple[tuple[str, int], ...]:
    """Return what the pods that are leaving a card give back, by namespace."""
    ours = {item.uid for item in evicted}
    uses = observation.cards[uuid].pods
    return tuple(
        ("" if uid in ours else uses[uid].pod.namespace, uses[uid].certain_bytes)
        for uid, since in terminating.items()
        if uid in uses and now - since < policy.termination_seconds
    )


def _cap_brake(
    evicted: Sequence[Evicted], namespace: str, card: str, policy: EvictionPolicy
) -> Brake | None:
    """
    Return whether the node or the namespace has had its evictions of the minute.

    Those that end the shortage of a card count apart, for that card alone: nobody may use up the
    allowance on which his own eviction depends.
    """
    counted = [item for item in evicted if item.card == card] if evicted else ()
    if not counted:
        return None
    if len(counted) >= policy.node_evictions_per_minute:
        return Brake.NODE_CAP
    of_namespace = sum(1 for item in counted if item.namespace == namespace)
    if not card and of_namespace >= policy.namespace_evictions_per_minute:
        return Brake.NAMESPACE_CAP
    return None


def _waiting(verdict: Verdict, otherwise: Outcome = Outcome.QUEUED) -> Outcome:
    return Outcome.STUCK if verdict.outcome is Outcome.STUCK else otherwise


def _rank(verdict: Verdict) -> tuple[int, int, str, str]:
    use = verdict.use
    excess, loan = (0, 0) if use is None else (use.excess_bytes, use.borrowed_bytes)
    return -excess, -loan, verdict.pod.uid, verdict.uuid
