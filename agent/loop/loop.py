"""
One tick: look, judge, look again before acting, say what is worth saying, publish.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent.events import NO_EPISODES, Damping, damped, notices_of
from agent.judge import judge, objection, settle
from agent.loop.counts import one_more, violations_since, with_violations
from agent.loop.eyes import Eyes
from agent.loop.news import NOTHING_TOLD, news
from agent.loop.owners import entered, evicted
from agent.loop.trouble import NO_TROUBLES, troubled
from agent.model.decision import Answer
from agent.model.memory import Memory
from agent.model.policy import Policy
from agent.model.state import AgentState, TickResult
from gpufence.cards import NodeCards

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.events import Notice
    from agent.loop.eyes import Seen
    from agent.loop.hands import Done, Hands
    from agent.model.decision import Decision, Verdict
    from agent.ports import Cards, Cluster, Processes

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """
    The world as the loop sees it; `timestamp` is the time of day in RFC 3339.
    """

    cards: Cards
    processes: Processes
    cluster: Cluster
    clock: Callable[[], float]
    timestamp: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    node: str
    policy: Policy = field(default_factory=Policy)
    damping: Damping = field(default_factory=Damping)

    unmeasured_seconds: float = 15.0
    """
    How long a card may go unread before the Node says so: a child of ours is replaced faster.
    """


class Loop:
    """
    Owns everything that goes from one tick to the next; `state` is its last word, and any thread
    may read it.
    """

    def __init__(self, ports: Ports, rules: Rules, hands: Hands) -> None:
        self._ports = ports
        self._rules = rules
        self._hands = hands
        self._eyes = Eyes(ports.cards, ports.processes, ports.cluster.pods)
        started_at = ports.clock()
        self._memory = Memory(started_at)
        self._suspects: frozenset[str] = frozenset()
        self._episodes = NO_EPISODES
        self._troubles = NO_TROUBLES
        self._told = NOTHING_TOLD
        self._published: tuple[object, ...] = ()
        self.state = AgentState(started_at, started_at)

    def tick(self) -> None:
        """
        Do all of it once. A bug in it is logged and counted, and nothing is done to anybody.
        """
        began = self._ports.clock()
        try:
            state = self._next_state()
        except Exception:  # noqa: BLE001 - measuring has to go on
            _log.exception("a tick failed; nobody is evicted by it")
            counts = self.state.counts
            self.state = replace(
                self.state, at=began, counts=replace(counts, failed=counts.failed + 1)
            )
            return
        seconds = self._ports.clock() - began
        counts = replace(state.counts, ticks=state.counts.ticks.observed(seconds))
        self.state = replace(state, counts=counts)

    def skip(self, ticks: int) -> None:
        """
        Count ticks that were left out.
        """
        counts = self.state.counts
        self.state = replace(self.state, counts=replace(counts, skipped=counts.skipped + ticks))

    def _next_state(self) -> AgentState:
        settled = self._settle()
        known = violations_since(self._memory)
        seen = self._eyes.look(self._suspects)
        now = self._ports.clock()
        policy = self._rules.policy
        decision, self._memory = judge(seen.use, seen.pods, self._memory, policy, now)
        self._suspects = decision.suspects
        self._act(decision)
        self._introduce(seen)
        self._told, told = news(self._told, decision, self._rules.node)
        self._say([*settled, *told, *self._troubled(seen, now)], now)
        before = self.state
        violations = with_violations(before.counts.violations, decision, self._memory, known)
        return replace(
            before,
            at=now,
            last=TickResult(seen.sample, seen.use, seen.pods, decision),
            measured_at=before.measured_at if _is_blind(seen) else seen.sample.taken_at,
            counts=replace(before.counts, violations=violations),
            ledger=entered(before.ledger, seen.use, seen.pods, decision, policy.gap_seconds),
        )

    def _settle(self) -> list[Notice]:
        """
        Remember the answers that have come since the last tick.
        """
        found: list[Notice] = []
        for done in self._hands.done():
            verdict, result, _ = done
            now = self._ports.clock()
            self._memory = settle(self._memory, verdict, result, self._rules.policy, now)
            found += notices_of(verdict, result)
            self._account(done)
        return found

    def _account(self, done: Done) -> None:
        verdict, result, _ = done
        key = (str(verdict.action), str(result.answer))
        counts = self.state.counts
        ledger = self.state.ledger
        if result.answer is Answer.ACCEPTED:
            ledger = evicted(ledger, verdict.pod)
        self.state = replace(
            self.state,
            counts=replace(counts, evictions=one_more(counts.evictions, key)),
            ledger=ledger,
        )
        level = logging.WARNING if result.answer is Answer.FAILED else logging.INFO
        _log.log(level, "acted", extra={"fields": _fields(done)})

    def _act(self, decision: Decision) -> None:
        """
        Look at those who must go once more, and hand over those against whom it still holds.
        """
        if not decision.acts or self._hands.busy:
            return
        uuids = (None if item.card is None else item.card.card.uuid for item in decision.acts)
        seen = self._eyes.look(frozenset(uuid for uuid in uuids if uuid is not None))
        self._hands.take([item for item in decision.acts if self._stands(item, seen)])

    def _stands(self, verdict: Verdict, seen: Seen) -> bool:
        now = self._ports.clock()
        against = objection(verdict, seen.use, seen.pods, self._rules.policy, now)
        if against:
            pod = verdict.pod
            _log.info("pod %s/%s is spared: %s", pod.namespace, pod.name, against)
        return not against

    def _introduce(self, seen: Seen) -> None:
        """
        Have the Node say which cards it has, whenever that changes.
        """
        sample = seen.sample
        cards = tuple(item.card for item in sample.cards)
        said = (sample.driver, cards)
        if cards and not sample.trouble and said != self._published:
            observed = self._ports.timestamp()
            self._ports.cluster.publish(NodeCards(sample.driver, observed, cards))
            self._published = said

    def _troubled(self, seen: Seen, now: float) -> tuple[Notice, ...]:
        rules = self._rules
        self._troubles, found = troubled(
            self._troubles, seen.sample, now, rules.node, rules.unmeasured_seconds
        )
        return found

    def _say(self, found: list[Notice], now: float) -> None:
        writes, self._episodes = damped(self._episodes, found, now, self._rules.damping)
        if writes:
            self._ports.cluster.write(writes)
        dropped = self._episodes.dropped
        if dropped != self.state.counts.muted:
            self.state = replace(self.state, counts=replace(self.state.counts, muted=dropped))


def _is_blind(seen: Seen) -> bool:
    return bool(seen.sample.trouble) or all(item.memory is None for item in seen.sample.cards)


def _fields(done: Done) -> dict[str, object]:
    verdict, result, seconds = done
    return {
        "action": str(verdict.action),
        "result": str(result.answer),
        "namespace": verdict.pod.namespace,
        "pod": verdict.pod.name,
        "uid": verdict.pod.uid,
        "card": "" if verdict.card is None else verdict.card.card.uuid,
        "used_bytes": None if verdict.use is None else verdict.use.used_bytes,
        "limit_bytes": verdict.limit_bytes,
        "over_seconds": round(verdict.over_seconds, 3),
        "short": verdict.short,
        "seconds": round(seconds, 3),
        "detail": result.detail,
    }
