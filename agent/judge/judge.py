"""
PURE. One tick: what is measured and what is remembered in, what is decided and remembered out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.judge.brakes import recent
from agent.judge.choice import chosen
from agent.judge.excess import containers_over, ineffective_caps
from agent.judge.findings import finding, nobodys
from agent.judge.gather import gathered
from agent.judge.offenders import hold_seconds
from agent.judge.reason import Case, Reason, reason
from agent.judge.tick import tick_of
from agent.judge.watch import Terms, carried, is_quiet
from agent.model.decision import Decision, Outcome, Verdict
from agent.model.memory import EMPTY, NO_REFUSALS, Memory, PodMemory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.judge.gather import Subject
    from agent.judge.standing import Standing
    from agent.judge.tick import Tick
    from agent.model.memory import Watch
    from agent.model.pod import PodOnNode, PodsOnNode
    from agent.model.policy import Policy
    from agent.model.use import NodeUse

_WITHIN = Reason(Outcome.WITHIN)


def judge(
    use: NodeUse, pods: PodsOnNode, memory: Memory, policy: Policy, now: float
) -> tuple[Decision, Memory]:
    """
    Decide what happens to every fenced pod of the node, and why.

    The result does not depend on the order of anything that comes in. What cannot be known is never
    held against a pod.
    """
    subjects = gathered(use, pods, memory, policy)
    standings = [at.standing for item in subjects for at in item.places.values() if at.standing]
    tick = tick_of(standings, pods, memory, policy, now)

    verdicts: list[Verdict] = []
    remembered: dict[str, PodMemory] = {}
    for subject in subjects:
        found, remembered[subject.pod.uid] = _judge_pod(subject, tick)
        verdicts += found
    held = {item.pod.uid: item.places.keys() for item in subjects}
    verdicts, acts = chosen(verdicts, held, tick)

    nobody = {
        uuid: nobodys(memory.unattributed.get(uuid, EMPTY), card, tick)
        for uuid, card in use.cards.items()
    }
    decision = Decision(
        at=now,
        verdicts=tuple(verdicts),
        acts=tuple(acts),
        brake=tick.node_brake,
        suspects=frozenset(_suspects(use, remembered)),
        findings={
            uuid: finding(card, nobody[uuid], pods, tick) for uuid, card in use.cards.items()
        },
    )
    return decision, Memory(
        started_at=memory.started_at,
        pods=remembered,
        listed=_listed(use, memory),
        terminating=tick.terminating,
        evicted=recent(memory.evicted, now),
        offences=memory.offences,
        unattributed={uuid: bucket for uuid, bucket in nobody.items() if bucket is not EMPTY},
    )


def _judge_pod(subject: Subject, tick: Tick) -> tuple[list[Verdict], PodMemory]:
    pod, past, places = subject
    if not places:
        return [Verdict(pod, Outcome.IDLE)], _remembered(past, past.first_seen_at, {})
    first_seen_at = _first_seen(subject)
    verdicts: list[Verdict] = []
    watches: dict[str, Watch] = {}
    for uuid, place in places.items():
        standing, watched = place.standing, past.watches.get(uuid)
        if standing is None:
            verdicts.append(Verdict(pod, Outcome.UNDECLARED, place.card, place.use))
        elif watched is None and standing.report_over is False:
            verdicts.append(_verdict(standing, _WITHIN, tick))
        else:
            case = _case(standing, past, watched, first_seen_at, tick)
            verdicts.append(_verdict(standing, reason(case, tick), tick, case.watch))
            if not is_quiet(case.watch):
                watches[uuid] = case.watch
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


def _first_seen(subject: Subject) -> float | None:
    """
    Return the pod's first sample with a process on any card; once known it stays.
    """
    if subject.past.first_seen_at is not None:
        return subject.past.first_seen_at
    found = (at.card.listed_at for at in subject.places.values() if at.use.processes)
    return min((listed for listed in found if listed is not None), default=None)


def _case(
    standing: Standing,
    past: PodMemory,
    watched: Watch | None,
    first_seen_at: float | None,
    tick: Tick,
) -> Case:
    """
    Count the time of a pod that is over a threshold, may be, or was a moment ago.
    """
    brake = tick.brake(standing)
    terms = Terms(
        first_seen_at=tick.now if first_seen_at is None else first_seen_at,
        hold_seconds=_hold(standing.pod, tick),
        braked=brake is not None,
    )
    watch = carried(watched, standing, tick, terms)
    return Case(standing, watch, terms, past.refusals, brake)


def _hold(pod: PodOnNode, tick: Tick) -> float:
    """
    Return the time over that makes a pod due; its own eviction must not make it harmless again.
    """
    if pod.uid in tick.terminating:
        return tick.policy.hold_seconds
    return hold_seconds(tick.memory.offences, pod.lineage, tick.now, tick.policy)


def _verdict(standing: Standing, found: Reason, tick: Tick, watch: Watch | None = None) -> Verdict:
    since = None if watch is None else watch.report.since
    over = standing.report_over is True
    return Verdict(
        pod=standing.pod,
        outcome=found.outcome,
        card=standing.card,
        use=standing.use,
        limit_bytes=standing.limit.limit_bytes,
        over=over,
        over_seconds=tick.now - since if over and since is not None else 0.0,
        due_seconds=found.due_seconds,
        short=standing.short,
        by_shortage=found.by_shortage,
        brake=found.brake,
        action=found.action,
        containers_over=containers_over(standing.use, standing.limit, tick.policy),
        ineffective=ineffective_caps(standing.pod, standing.use, tick.policy),
    )


def _suspects(use: NodeUse, remembered: Mapping[str, PodMemory]) -> Iterator[str]:
    """
    Yield the cards whose processes the next sample must list: where time is being counted, and
    where the list is unknown.
    """
    yield from (uuid for uuid, card in use.cards.items() if card.listed_at is None)
    for pod in remembered.values():
        yield from pod.watches


def _listed(use: NodeUse, memory: Memory) -> dict[str, float]:
    """
    Remember the latest list of each card.
    """
    times = ((uuid, card.listed_at, memory.listed.get(uuid)) for uuid, card in use.cards.items())
    latest = (
        (uuid, max((at for at in (now, past) if at is not None), default=None))
        for uuid, now, past in times
    )
    return {uuid: at for uuid, at in latest if at is not None}
