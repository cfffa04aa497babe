"""
PURE. One tick: what is measured and what is remembered in, what is decided and remembered out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.judge.brakes import brake_of, chosen, recent, tick_of
from agent.judge.reason import hold_seconds, verdict_on, within
from agent.judge.standing import finding, standing, unattributed
from agent.judge.time import carried, is_quiet
from agent.model.decision import Decision, Outcome, Verdict
from agent.model.memory import EMPTY, NO_REFUSALS, Memory, PodMemory
from agent.model.use import PodOnCard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.judge.brakes import Tick
    from agent.model.memory import Watch
    from agent.model.pod import PodOnNode
    from agent.model.policy import Policy
    from agent.model.use import Observation
    from gpufence.mode import Mode


def judge(
    observation: Observation,
    memory: Memory,
    policy: Policy,
    now: float,
    outstanding: Sequence[Verdict] = (),
) -> tuple[Decision, Memory]:
    """
    Decide what happens to every fenced pod of the node, and why.

    `outstanding` are the acts of earlier ticks that have not been answered. The result does not
    depend on the order of anything that comes in. What cannot be known is never held against a pod.
    """
    pods, cards = observation.pods, observation.cards
    uses = _uses(observation, memory, policy)
    flat = [use for of_pod in uses.values() for use in of_pod]
    tick = tick_of(flat, pods, memory, policy, now, outstanding)
    verdicts: list[Verdict] = []
    remembered: dict[str, PodMemory] = {}
    for uid, pod in pods.by_uid.items():
        if pod.mode is not None:
            past = _past(memory.pods.get(uid), pod.mode)
            of_pod, remembered[uid] = _judge_pod(pod, past, uses.get(uid, ()), observation, tick)
            verdicts += of_pod
    held = {uid: {use.card.uuid for use in of_pod} for uid, of_pod in uses.items()}
    verdicts, acts = chosen(verdicts, held, tick)
    nobodys = {
        uuid: unattributed(memory.unattributed.get(uuid, EMPTY), card, tick)
        for uuid, card in cards.items()
    }
    decision = Decision(
        at=now,
        verdicts=tuple(verdicts),
        acts=tuple(acts),
        brake=tick.node_brake,
        suspects=frozenset(_suspects(observation, remembered)),
        findings={uuid: finding(card, nobodys[uuid], pods, policy) for uuid, card in cards.items()},
    )
    return decision, Memory(
        started_at=memory.started_at,
        pods=remembered,
        listed=_listed(observation, memory),
        terminating=tick.terminating,
        evicted=recent(memory.evicted, now),
        offences=memory.offences,
        unattributed={uuid: bucket for uuid, bucket in nobodys.items() if bucket is not EMPTY},
    )


def _uses(observation: Observation, memory: Memory, policy: Policy) -> dict[str, list[PodOnCard]]:
    """
    Return what each fenced pod holds, by card, and how that stands against its limit.

    A card where its time is being counted belongs to it though it holds nothing there now: its
    buckets drain like any other's, and letting go for a second must not empty them.
    """
    cards = observation.cards
    uses: dict[str, list[PodOnCard]] = {}
    for uuid in sorted(cards):
        card = cards[uuid]
        for uid, use in card.pods.items():
            if use.pod.mode is not None:
                uses.setdefault(uid, []).append(standing(use, card, policy))
    for uid, past in memory.pods.items():
        pod = observation.pods.by_uid.get(uid)
        if not past.watches or pod is None or pod.mode is None or past.mode < pod.mode:
            continue
        for uuid in past.watches:
            if uuid in cards and uid not in cards[uuid].pods:
                nothing = None if cards[uuid].listed_at is None else 0
                left = PodOnCard(pod, cards[uuid].card, nothing, nothing)
                uses.setdefault(uid, []).append(standing(left, cards[uuid], policy))
                uses[uid].sort(key=lambda use: use.card.uuid)
    return uses


def _past(past: PodMemory | None, mode: Mode) -> PodMemory:
    """
    Return what is remembered; any rise in mode starts every count of time from zero.
    """
    if past is None or past.mode < mode:
        return PodMemory(mode)
    return past if past.mode is mode else replace(past, mode=mode)


def _judge_pod(
    pod: PodOnNode,
    past: PodMemory,
    uses: Sequence[PodOnCard],
    observation: Observation,
    tick: Tick,
) -> tuple[list[Verdict], PodMemory]:
    if not uses:
        return [Verdict(pod, Outcome.IDLE)], _remembered(past, past.first_seen_at, {})
    first_seen_at = _first_seen(past, uses, observation)
    verdicts: list[Verdict] = []
    watches: dict[str, Watch] = {}
    for use in uses:
        uuid = use.card.uuid
        if use.limit_bytes is None:
            verdicts.append(Verdict(pod, Outcome.UNDECLARED, use))
        elif use.report_over is False and uuid not in past.watches:
            verdicts.append(within(use, tick))
        else:
            card = observation.cards[uuid]
            known = use._replace(
                first_seen_at=tick.now if first_seen_at is None else first_seen_at,
                hold_seconds=_hold(pod, tick),
                refusals=past.refusals,
                brake=brake_of(use, card, tick),
            )
            watch = carried(past.watches.get(uuid), known, card, tick)
            verdicts.append(verdict_on(known._replace(watch=watch), card, tick))
            if not is_quiet(watch):
                watches[uuid] = watch
    return verdicts, _remembered(past, first_seen_at, watches)


def _remembered(
    past: PodMemory, first_seen_at: float | None, watches: Mapping[str, Watch]
) -> PodMemory:
    """
    Keep what a pod has done; refusals are forgotten once nothing is held against it any more.
    """
    if not watches and not past.watches and first_seen_at == past.first_seen_at:
        return past
    refusals = past.refusals if watches else NO_REFUSALS
    return PodMemory(past.mode, first_seen_at, refusals, watches)


def _first_seen(
    past: PodMemory, uses: Sequence[PodOnCard], observation: Observation
) -> float | None:
    """
    Return the pod's first sample with a process on any card; once known it stays.
    """
    if past.first_seen_at is not None:
        return past.first_seen_at
    times = (observation.cards[use.card.uuid].listed_at for use in uses if use.processes)
    return min((listed for listed in times if listed is not None), default=None)


def _hold(pod: PodOnNode, tick: Tick) -> float:
    """
    Return the time over that makes a pod due; its own eviction must not make it harmless again.
    """
    if pod.uid in tick.terminating:
        return tick.policy.hold_seconds
    return hold_seconds(tick.memory.offences, pod.lineage, tick.now, tick.policy)


def _suspects(observation: Observation, remembered: Mapping[str, PodMemory]) -> Iterator[str]:
    """
    Yield the cards whose processes the next sample must list: where time is being counted, and
    where the list is unknown.
    """
    yield from (uuid for uuid, card in observation.cards.items() if card.listed_at is None)
    for pod in remembered.values():
        yield from pod.watches


def _listed(observation: Observation, memory: Memory) -> dict[str, float]:
    """
    Remember the latest list of each card.
    """
    latest: dict[str, float] = {}
    for uuid, card in observation.cards.items():
        times = [at for at in (card.listed_at, memory.listed.get(uuid)) if at is not None]
        if times:
            latest[uuid] = max(times)
    return latest
