"""One tick: look, judge, look again before acting, say what is worth saying, publish."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from agent.attribute import attribute
from agent.concern import NO_CONCERNS
from agent.events.episodes import NO_EPISODES, Damping, damped
from agent.events.notices import NOTHING_ANNOUNCED, new_notices, notices_of_act, unreadable
from agent.judge import judge, objection, settle
from agent.model.decision import Answer
from agent.model.memory import NO_WATCH, Memory
from agent.model.policy import EvictionPolicy, Mps
from agent.model.state import (
    AgentState,
    Counts,
    TickResult,
)
from gpufence.cards import NodeCards
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent.concern import Concerns
    from agent.events.episodes import Notice
    from agent.loop.worker import Worker
    from agent.model.decision import Decision, FinishedAct, Verdict
    from agent.model.pod import PodsOnNode
    from agent.model.sample import Sample
    from agent.model.use import Observation, UseKey
    from agent.ports import Cards, ClusterPort, Processes

MOST_NAMESPACES: Final = 200
"""Namespaces whose violations are counted apart; what comes later is counted together."""
OTHERS: Final = "(others)"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """The world as the loop sees it; `timestamp` is the time of day in RFC 3339."""

    cards: Cards
    processes: Processes
    cluster: ClusterPort
    clock: Callable[[], float]
    timestamp: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    node: str
    policy: EvictionPolicy = field(default_factory=EvictionPolicy)
    damping: Damping = field(default_factory=Damping)

    unmeasured_seconds: float = 15.0
    """How long a card may go unread before the Node says so: a child of ours is replaced faster."""


@dataclass(slots=True)
class Observer:
    """
    Looks, and remembers the look before: what has not changed is not read again, and a PID that has
    changed hands is not certain yet.
    """

    cards: Cards
    processes: Processes
    pods: Callable[[], PodsOnNode]
    charge_mps: bool = False
    idle: Callable[[], Mapping[str, float]] = dict
    before: Observation | None = None

    def look(self, suspects: frozenset[str]) -> Observation:
        sample = self.cards.sample(suspects)
        occupants = self.processes.occupants(_newly_listed(sample, self.before))
        # The pods are asked for last: who is on the card may be younger than the look before.
        pods = self.pods()
        found = attribute(sample, occupants, pods, self.before, charge_mps=self.charge_mps)
        self.before = replace(found, idle=self.idle()) if pods.bursting else found
        return self.before


class Loop:
    """
    Owns everything that goes from one tick to the next; `state` is its last word, and any thread
    may read it.
    """

    def __init__(
        self, ports: Ports, rules: Rules, worker: Worker, concerns: Concerns = NO_CONCERNS
    ) -> None:
        self._ports = ports
        self._rules = rules
        self._worker = worker
        self._concerns = concerns
        charge_mps = rules.policy.mps is Mps.EVICT
        self._observer = Observer(
            *(ports.cards, ports.processes, ports.cluster.pods),
            charge_mps=charge_mps,
            idle=lambda: concerns.idle(ports.clock()),
        )
        started_at = ports.clock()
        self._memory = Memory(started_at)
        self._suspects: frozenset[str] = frozenset()
        self._counts = Counts()
        self._violations: Mapping[UseKey, float] = {}
        self._episodes = NO_EPISODES
        self._unreadable: Mapping[str, float] = {}
        self._announced = NOTHING_ANNOUNCED
        self._published: tuple[object, ...] = ()
        self.state = AgentState(started_at, started_at)

    def tick(self, skipped: int = 0) -> float:
        """
        Do all of it once, after so many ticks left out; return when the next eviction may be due.

        A bug in it is logged and counted, and nothing is done to anybody.
        """
        began = self._ports.clock()
        self._counts = replace(self._counts, skipped=self._counts.skipped + skipped)
        try:
            self.state = self._next_state(began)
        except Exception:  # noqa: BLE001 - measuring has to go on
            _log.exception("a tick failed; it evicts no pod")
            self._counts = replace(self._counts, failed=self._counts.failed + 1)
            self.state = replace(self.state, at=began, counts=self._counts)
            return math.inf
        return self.state.last.decision.deadline if self.state.last else math.inf

    def _next_state(self, began: float) -> AgentState:
        answered = self._worker.finished()
        settled = self._settle(answered)
        observation = self._observer.look(self._suspects)
        now = self._ports.clock()
        policy = self._rules.policy
        decision, self._memory = judge(
            observation, self._memory, policy, now, self._worker.outstanding
        )
        self._suspects = decision.suspects
        self._act(decision)
        gap = policy.gap_after(now - observation.sample.taken_at)
        result = TickResult(observation, decision, tuple(answered), gap)
        said = self._concerns.look(result)
        self._publish(observation.sample)
        if said.conditions:
            self._ports.cluster.say(said.conditions)
        notices = [*settled, *self._notices(observation.sample, decision), *said.notices]
        writes, self._episodes = damped(self._episodes, notices, now, self._rules.damping)
        if writes:
            self._ports.cluster.write(writes)
        violations, self._violations = count_violations(
            self._counts.violations, self._violations, decision
        )
        self._counts = replace(
            self._counts,
            ticks=self._counts.ticks.observed(self._ports.clock() - began),
            muted=self._episodes.dropped,
            violations=violations,
        )
        return AgentState(
            started_at=self.state.started_at,
            at=now,
            last=result,
            measured_at=_measured_at(observation.sample, self.state.measured_at),
            counts=self._counts,
        )

    def _settle(self, answered: list[FinishedAct]) -> list[Notice]:
        """Remember the answers that have come since the last tick."""
        notices: list[Notice] = []
        for act in answered:
            verdict, result, _ = act
            now = self._ports.clock()
            self._memory = settle(self._memory, verdict, result, self._rules.policy, now)
            key = (str(verdict.action), str(result.answer))
            done = self._counts.evictions
            evictions = {**done, key: done.get(key, 0) + 1}
            self._counts = replace(self._counts, evictions=evictions)
            level = logging.WARNING if result.answer is Answer.FAILED else logging.INFO
            _log.log(level, "acted", extra={"fields": _fields(act)})
            notices += notices_of_act(verdict, result)
        return notices

    def _act(self, decision: Decision) -> None:
        """Look once more at pods to be evicted, and hand over those for which it still holds."""
        if not decision.acts:
            return
        observation = self._observer.look(frozenset(item.uuid for item in decision.acts))
        lending = decision.lending
        due = [item for item in decision.acts if self._stands(item, observation, lending)]
        self._worker.take(due)

    def _stands(self, verdict: Verdict, observation: Observation, lending: frozenset[str]) -> bool:
        now = self._ports.clock()
        looked = max(now - observation.sample.taken_at, self._memory.looks.seconds)
        against = objection(verdict, observation, self._rules.policy, now, looked, lending)
        if against:
            pod = verdict.pod
            _log.info("pod %s/%s is spared: %s", pod.namespace, pod.name, against)
        return not against

    def _publish(self, sample: Sample) -> None:
        """Have the Node say which cards it has, whenever that changes."""
        cards = tuple(item.card for item in sample.cards)
        shown = (sample.driver, cards)
        if cards and not sample.trouble and shown != self._published:
            observed = self._ports.timestamp()
            self._ports.cluster.publish(NodeCards(sample.driver, observed, cards))
            self._published = shown

    def _notices(self, sample: Sample, decision: Decision) -> Iterator[Notice]:
        rules = self._rules
        self._announced, of_decision = new_notices(self._announced, decision, rules.node)
        yield from of_decision
        self._unreadable, of_cards = unreadable(
            self._unreadable, sample, decision.at, rules.node, rules.unmeasured_seconds
        )
        yield from of_cards


def _measured_at(sample: Sample, before: float | None) -> float | None:
    """Return when any card could last be read."""
    silent = all(item.memory is None for item in sample.cards) and not sample.unfenced
    blind = sample.trouble or silent
    return before if blind else sample.taken_at


def _fields(act: FinishedAct) -> dict[str, object]:
    verdict, result, seconds = act
    return {
        "action": str(verdict.action),
        "result": str(result.answer),
        "namespace": verdict.pod.namespace,
        "pod": verdict.pod.name,
        "uid": verdict.pod.uid,
        "card": verdict.uuid,
        "used_bytes": None if verdict.use is None else verdict.use.used_bytes,
        "limit_bytes": verdict.limit_bytes,
        "over_seconds": round(verdict.over_seconds, 3),
        "short": verdict.short,
        "seconds": round(seconds, 3),
        "detail": result.detail,
    }


def _newly_listed(sample: Sample, before: Observation | None) -> set[int]:
    """Return the PIDs of the lists that are new; the others keep the owners they had."""
    past = {} if before is None else before.cards
    pids: set[int] = set()
    for card in sample.cards:
        listed = card.processes
        known = past.get(card.card.uuid)
        if listed is not None and (known is None or known.listed_at != listed.listed_at):
            pids.update(process.pid for process in listed.processes)
    return pids


def count_violations(
    counts: Mapping[tuple[str, str], int], known: Mapping[UseKey, float], decision: Decision
) -> tuple[Mapping[tuple[str, str], int], dict[UseKey, float]]:
    """
    Count each violation once, when it begins, and return since when which pod is over its limit on
    which card; `known` is what was returned the last time.
    """
    running: dict[UseKey, float] = {}
    for verdict in decision.verdicts:
        use = verdict.use
        since = None if use is None or use.watch is NO_WATCH else use.watch.report.since
        if since is None:
            continue
        key = (verdict.pod.uid, verdict.uuid)
        running[key] = since
        if verdict.over and known.get(key) != since:
            place = (verdict.pod.namespace, str(verdict.pod.mode))
            if place not in counts and len(counts) >= MOST_NAMESPACES:
                place = (OTHERS, place[1])
            counts = {**counts, place: counts.get(place, 0) + 1}
    return counts, running


_DICE = SystemRandom()
STUCK_SECONDS: Final = 60.0
"""Without one tick ending for so long beyond its interval, the loop hangs."""
LEAST_PAUSE_SECONDS: Final = 0.1
"""Before a tick that comes early for a deadline: with many of them, NVML is asked no more often."""


def next_due(
    due: float,
    now: float,
    interval_seconds: float,
    chance: float = 0.0,
    deadline: float = math.inf,
    took_seconds: float = 0.0,
) -> tuple[float, int]:
    """
    Return when the tick after the one that was due at `due` is due, and how many are left out.

    Ticks are due between half an interval and a whole one after each other, as `chance` in [0, 1)
    has it, however long each takes; those whose time passed while another was running are left out,
    never made up for. One comes sooner for a `deadline`, after a pause that is no shorter than what
    the last one took.
    """
    late = max(now - due, 0.0)
    skipped = int(late // interval_seconds)
    soonest = now + max(LEAST_PAUSE_SECONDS, took_seconds)
    usual = due + (skipped + 1 - chance / 2) * interval_seconds
    return min(usual, max(deadline, soonest)), skipped


class TickThread:
    """
    Calls `tick` again and again, with the number of ticks left out since the last, soon after the
    deadline that it returned if that comes first, and `finish` at the end, on one and the same
    thread: the kernel ends NVML's child with the thread that started it.
    """

    def __init__(
        self,
        tick: Callable[[int], float],
        finish: Callable[[], None],
        interval_seconds: float,
        clock: Callable[[], float],
        chance: Callable[[], float] = _DICE.random,
    ) -> None:
        self._tick = tick
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._chance = chance
        self._repeating = Repeating("loop", self._turn, finish=finish, jitter=0.0)
        self._due = self._ticked_at = clock()
        self._skipped = 0

    def start(self) -> None:
        self._repeating.start()

    def stop(self, wait_seconds: float) -> bool:
        """End after the tick that is under way; return whether it did so in time."""
        return self._repeating.stop(wait_seconds)

    @property
    def trouble(self) -> str:
        """Return that no tick has ended for so long that only a restart would help."""
        silence = self._clock() - self._ticked_at
        if silence <= STUCK_SECONDS + self._interval_seconds:
            return ""
        return f"no look at the cards has ended for {silence:.0f} s: the agent's loop hangs"

    def _turn(self) -> float:
        began = self._clock()
        deadline = self._tick(self._skipped)
        self._ticked_at = now = self._clock()
        self._due, self._skipped = next_due(
            self._due, now, self._interval_seconds, self._chance(), deadline, now - began
        )
        return max(self._due - now, 0.0)
