"""One tick: look, judge, look again before acting, say what is worth saying, publish."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent.events import (
    NO_EPISODES,
    NOTHING_ANNOUNCED,
    Damping,
    damped,
    new_notices,
    notices_of_act,
    unreadable,
)
from agent.judge import judge, objection, settle
from agent.loop.activity_watch import ActivityWatch
from agent.loop.need_watch import NeedWatch
from agent.model.activity import ActivityPolicy
from agent.model.decision import Answer
from agent.model.memory import Memory
from agent.model.need import NeedPolicy
from agent.model.policy import EvictionPolicy, Mps
from agent.model.state import (
    AgentState,
    Counts,
    TickResult,
    count_violations,
    one_more,
)
from agent.observe import Observer
from gpufence.cards import NodeCards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent.events import Notice
    from agent.loop.worker import FinishedAct, Worker
    from agent.model.activity import UseKey
    from agent.model.decision import Decision, Verdict
    from agent.model.sample import Sample
    from agent.model.use import Observation
    from agent.ports import Cards, ClusterPort, Processes

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
    activity: ActivityPolicy = field(default_factory=ActivityPolicy)
    need: NeedPolicy = field(default_factory=NeedPolicy)

    unmeasured_seconds: float = 15.0
    """How long a card may go unread before the Node says so: a child of ours is replaced faster."""


class Loop:
    """
    Owns everything that goes from one tick to the next; `state` is its last word, and any thread
    may read it.
    """

    def __init__(self, ports: Ports, rules: Rules, worker: Worker) -> None:
        self._ports = ports
        self._rules = rules
        self._worker = worker
        charge_mps = rules.policy.mps is Mps.EVICT
        self._observer = Observer(
            ports.cards, ports.processes, ports.cluster.pods, charge_mps=charge_mps
        )
        self._activity = ActivityWatch(ports.processes, ports.cluster, ports.clock, rules.activity)
        self._need = NeedWatch(ports.cluster, rules.node, rules.need, ports.clock, ports.timestamp)
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

    def tick(self, skipped: int = 0) -> None:
        """
        Do all of it once, after so many ticks left out.

        A bug in it is logged and counted, and nothing is done to anybody.
        """
        began = self._ports.clock()
        self._counts = replace(self._counts, skipped=self._counts.skipped + skipped)
        try:
            self.state = self._next_state(began)
        except Exception:  # noqa: BLE001 - measuring has to go on
            _log.exception("a tick failed; nobody is evicted by it")
            self._counts = replace(self._counts, failed=self._counts.failed + 1)
            self.state = replace(self.state, at=began, counts=self._counts)

    def end(self) -> None:
        """Have stored what was remembered since it was stored last; no tick comes any more."""
        self._need.store()

    def _next_state(self, began: float) -> AgentState:
        settled = self._settle()
        observation = self._observer.look(self._suspects)
        now = self._ports.clock()
        policy = self._rules.policy
        decision, self._memory = judge(
            observation, self._memory, policy, now, self._worker.outstanding
        )
        self._suspects = decision.suspects
        self._act(decision)
        activity = self._activity.look(observation)
        gap_seconds = policy.gap_after(now - observation.sample.taken_at)
        need = self._need.look(observation, gap_seconds)
        self._publish(observation.sample)
        self._write([*settled, *self._notices(observation.sample, decision)], now)
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
            last=TickResult(observation, decision),
            measured_at=_measured_at(observation.sample, self.state.measured_at),
            counts=self._counts,
            activity=activity,
            need=need,
        )

    def _settle(self) -> list[Notice]:
        """Remember the answers that have come since the last tick."""
        notices: list[Notice] = []
        for act in self._worker.finished():
            verdict, result, _ = act
            now = self._ports.clock()
            self._memory = settle(self._memory, verdict, result, self._rules.policy, now)
            key = (str(verdict.action), str(result.answer))
            evictions = one_more(self._counts.evictions, key)
            self._counts = replace(self._counts, evictions=evictions)
            if result.answer is Answer.ACCEPTED:
                self._need.evicted(verdict)
            level = logging.WARNING if result.answer is Answer.FAILED else logging.INFO
            _log.log(level, "acted", extra={"fields": _fields(act)})
            notices += notices_of_act(verdict, result)
        return notices

    def _act(self, decision: Decision) -> None:
        """Look at those who must go once more, and hand over those against whom it still holds."""
        if not decision.acts:
            return
        observation = self._observer.look(frozenset(item.uuid for item in decision.acts))
        self._worker.take([item for item in decision.acts if self._stands(item, observation)])

    def _stands(self, verdict: Verdict, observation: Observation) -> bool:
        now = self._ports.clock()
        looked = max(now - observation.sample.taken_at, self._memory.looks.seconds)
        against = objection(verdict, observation, self._rules.policy, now, looked)
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

    def _write(self, notices: list[Notice], now: float) -> None:
        writes, self._episodes = damped(self._episodes, notices, now, self._rules.damping)
        if writes:
            self._ports.cluster.write(writes)


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
