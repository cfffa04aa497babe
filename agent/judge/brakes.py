"""
PURE. What stops evictions that are due, and who goes first: the guard against our own mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.judge.time import in_start_pause
from agent.model.decision import Brake, Outcome
from agent.model.memory import Evicted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent.model.decision import Verdict
    from agent.model.memory import Memory
    from agent.model.pod import PodsOnNode
    from agent.model.policy import EvictionPolicy
    from agent.model.use import CardUse, Observation, PodOnCard

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Tick:
    """
    What holds for every pod of one tick.

    `renewed` are the cards whose list of processes has not been judged before, `evicted` the
    evictions of the last minute. `node_brake` stops every eviction; START has its own way of not
    counting time. `outstanding` are the acts that have not been answered.
    """

    now: float
    policy: EvictionPolicy
    memory: Memory
    renewed: frozenset[str]
    terminating: Mapping[str, float]
    evicted: tuple[Evicted, ...]
    node_brake: Brake | None
    outstanding: Sequence[Verdict] = ()


def tick_of(
    observation: Observation,
    uses: Sequence[PodOnCard],
    memory: Memory,
    policy: EvictionPolicy,
    now: float,
    outstanding: Sequence[Verdict] = (),
) -> Tick:
    """
    Find out what holds for every pod, given how all of them stand.
    """
    brake = None
    if in_start_pause(memory.started_at, now, policy):
        brake = Brake.START
    elif not observation.pods.fresh:
        brake = Brake.STALE_PODS
    elif _too_many_at_once(uses, policy):
        brake = Brake.SUSPENDED
    return Tick(
        now=now,
        policy=policy,
        memory=memory,
        renewed=frozenset(
            uuid
            for uuid, card in observation.cards.items()
            if card.listed_at is not None and card.listed_at > memory.listed.get(uuid, -1.0)
        ),
        terminating=_terminating_since(memory.terminating, observation.pods, now, policy),
        evicted=recent(memory.evicted, now),
        node_brake=brake,
        outstanding=outstanding,
    )


def brake_of(use: PodOnCard, card: CardUse, tick: Tick) -> Brake | None:
    """
    Return what stops the eviction of a pod, before anybody is chosen in this tick.
    """
    if tick.node_brake is not None:
        return tick.node_brake
    if tick.terminating and _holds_up(card, use.pod.uid, tick):
        return Brake.TERMINATING
    return _cap_brake(tick.evicted, use.pod.namespace, tick.policy)


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
    evicted += [Evicted(tick.now, item.pod.namespace) for item in tick.outstanding]
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
        brake = _cap_brake(evicted, pod.namespace, tick.policy)
        if not taken.isdisjoint(cards):
            settled[index] = verdict._replace(outcome=_waiting(verdict), action=None)
        elif brake is not None:
            outcome = _waiting(verdict, Outcome.BRAKED)
            settled[index] = verdict._replace(outcome=outcome, action=None, brake=brake)
        else:
            taken.update(cards)
            evicted.append(Evicted(tick.now, pod.namespace))
            acts.append(verdict)
    return [settled.get(index, item) for index, item in enumerate(verdicts)], acts


def recent(evicted: Iterable[Evicted], now: float) -> tuple[Evicted, ...]:
    """
    Return the evictions of the last minute.
    """
    return tuple(item for item in evicted if now - item.at < MINUTE)


def _too_many_at_once(uses: Sequence[PodOnCard], policy: EvictionPolicy) -> bool:
    """
    Return whether more than half of the fenced pods that hold memory are over their limits, pods of
    several namespaces among them: then rather our limits are wrong than all of them.
    """
    violators = {use.pod.uid: use.pod.namespace for use in uses if use.report_over}
    if len(set(violators.values())) < policy.suspend_namespaces:
        return False
    holders = {use.pod.uid for use in uses if use.limit_bytes is not None}
    return 2 * len(violators) > len(holders)


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


def _holds_up(card: CardUse, pod_uid: str, tick: Tick) -> bool:
    """
    Return whether another pod that is about to leave the card holds up a pod's eviction: what it
    gives back may end the shortage.
    """
    return any(
        uid != pod_uid
        and uid in tick.terminating
        and tick.now - tick.terminating[uid] < tick.policy.termination_seconds
        and use.used_bytes != 0
        for uid, use in card.pods.items()
    )


def _cap_brake(evicted: Sequence[Evicted], namespace: str, policy: EvictionPolicy) -> Brake | None:
    """
    Return whether the node or the namespace has had its evictions of the minute.
    """
    if not evicted:
        return None
    if len(evicted) >= policy.node_evictions_per_minute:
        return Brake.NODE_CAP
    of_namespace = sum(1 for item in evicted if item.namespace == namespace)
    if of_namespace >= policy.namespace_evictions_per_minute:
        return Brake.NAMESPACE_CAP
    return None


def _waiting(verdict: Verdict, otherwise: Outcome = Outcome.QUEUED) -> Outcome:
    return Outcome.STUCK if verdict.outcome is Outcome.STUCK else otherwise


def _rank(verdict: Verdict) -> tuple[int, str, str]:
    excess = 0 if verdict.use is None else verdict.use.excess_bytes
    return -excess, verdict.pod.uid, verdict.uuid
