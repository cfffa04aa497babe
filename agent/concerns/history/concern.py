"""What each fenced pod held in the last minutes, and records of how pods ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

from agent.concern import Check, Concern
from agent.concerns.history.record import (
    CardMoment,
    PastUse,
    added,
    capped_record,
    card_moment,
    configmap,
    evicted_record,
    running_record,
    stored_records,
)
from agent.concerns.history.ring import SPAN_SECONDS, Rings, peak_of
from agent.model.decision import Action, Answer
from agent.node_store import NodeStore
from gpufence import names
from gpufence.errors import InvalidError
from gpufence.records import NodeRecords, together, write_records
from gpufence.times import read_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster import AgentCluster, ClusterSettings
    from agent.concern import Ground
    from agent.model.decision import FinishedAct, Verdict
    from agent.model.pod import PodOnNode
    from agent.model.policy import EvictionPolicy
    from agent.model.state import TickResult
    from agent.model.use import UseKey
    from gpufence.cards import Card
    from gpufence.records import Record
    from kube import Client, JsonObject

PAGE: Final = "/v1/why"
STORE_SECONDS: Final = 5.0
"""From one time that records are stored to the next: a node evicts several pods at once."""

_ENDS: Final = (Action.EVICT, Action.EVICT_JOB, Action.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPolicy:
    """There is nothing to be said: what is kept is bounded."""


class RecordKeeper(Protocol):
    """Where records are stored; `RecordStore` is the real thing."""

    found: NodeRecords | None
    """What an agent of this node has stored, as last read; None before that."""

    def start(self) -> None: ...

    def store(self, kept: NodeRecords) -> None: ...

    def stop(self) -> None: ...


class RecordStore(NodeStore[NodeRecords, NodeRecords]):
    """Keeps how pods of the node ended."""

    title = "records of how pods ended"
    prefix = names.WHY_PREFIX

    def __init__(self, cluster: AgentCluster) -> None:
        super().__init__(cluster.client, cluster.settings)
        self._cluster = cluster

    def nothing(self, node: str) -> NodeRecords:
        return NodeRecords(node)

    def parsed(self, raw: JsonObject, node: str, now: str) -> NodeRecords:
        del now
        return stored_records(raw, node)

    def both(self, kept: NodeRecords, found: NodeRecords) -> NodeRecords:
        return added(kept, found.records)

    def whole(self, kept: NodeRecords, now: str, version: str) -> JsonObject:
        del now
        return configmap(kept, version, self._cluster.node_uid)


class HistoryConcern(Concern):
    """
    Owns the rings and the records. An eviction is recorded when the API server has accepted it,
    with the card as it stood when that was decided.
    """

    name = "history"
    title = "How pods ended"
    settings = HistoryPolicy

    def __init__(
        self,
        policy: EvictionPolicy,
        node: str,
        records: RecordKeeper | None,
        clock: Callable[[], float],
        timestamp: Callable[[], str],
    ) -> None:
        self._keeper = records
        self._clock = clock
        self._timestamp = timestamp
        self._rings = Rings(policy)
        self._decided: dict[UseKey, tuple[PastUse, CardMoment]] = {}
        self._last: TickResult | None = None
        self._ends: dict[tuple[str, str], str] = {}
        self._known = NodeRecords(node, timestamp())
        self._found: NodeRecords | None = None
        self._kept: tuple[Record, ...] = ()
        self._kept_at = clock() - STORE_SECONDS

    @classmethod
    def on(cls, ground: Ground, settings: HistoryPolicy) -> Self:
        del settings
        at = ground.cluster
        keeper = None if at is None else RecordStore(at)
        return cls(ground.policy, ground.node, keeper, ground.clock, ground.timestamp)

    @classmethod
    def checks(cls, client: Client, acting: Client, where: ClusterSettings) -> list[Check]:
        del acting
        return [RecordStore.check(client, where)]

    def start(self) -> None:
        if self._keeper is not None:
            self._keeper.start()

    def look(self, tick: TickResult) -> None:
        self._rings.look(tick)
        past, self._last = self._last, tick
        self._restore()
        made = [record for act in tick.acts if (record := self._ended(act)) is not None]
        if past is None or past.observation.pods is not tick.observation.pods:
            made += self._capped(tick)
        if made:
            self._known = added(self._known, made)
        pods = tick.observation.pods.by_uid
        kept = {key: moment for key, moment in self._decided.items() if key[0] in pods}
        there = {
            (act.pod.uid, act.uuid): (self._past(act), card_moment(act, tick))
            for act in tick.decision.acts
        }
        self._decided = {**kept, **there}
        if self._clock() - self._kept_at >= STORE_SECONDS:
            self._store()

    def pages(self) -> Mapping[str, Callable[[], str]]:
        return {PAGE: self._page, f"{PAGE}?only={names.WHY_RUNNING}": self._running_page}

    def stop(self) -> None:
        """Have stored what was recorded since it was stored last."""
        self._store()
        if self._keeper is not None:
            self._keeper.stop()

    def _ended(self, act: FinishedAct) -> Record | None:
        verdict = act.verdict
        if act.result.answer is not Answer.ACCEPTED or verdict.action not in _ENDS:
            return None
        # By now it may have let go: what it was evicted for is how it stood when that was decided.
        decided = self._decided.get((verdict.pod.uid, verdict.uuid))
        return evicted_record(verdict, *(decided or (self._past(verdict), CardMoment())))

    def _capped(self, tick: TickResult) -> list[Record]:
        """Return the ends at a cap that are new, and not of long before the agent started."""
        made: list[Record] = []
        pods = [pod for pod in tick.observation.pods.by_uid.values() if pod.mode is not None]
        ends: dict[tuple[str, str], str] = {}
        for pod in pods:
            for failure in pod.failures:
                key, at = (pod.uid, failure.ending.container), failure.ending.at
                ends[key] = at
                age = _age(at, self._timestamp())
                if self._ends.get(key) != at and age < SPAN_SECONDS:
                    found = self._most_used(pod, age, at, tick)
                    made += filter(None, [capped_record(pod, failure, *found)])
        self._ends = ends
        return made

    def _most_used(
        self, pod: PodOnNode, age: float, at: str, tick: TickResult
    ) -> tuple[Card | None, PastUse]:
        """Return the card on which a pod held the most up to its end, and its course there."""
        then = self._clock() - age
        best: tuple[Card | None, PastUse] = None, PastUse([], then, at)
        most = 0
        for uuid in self._rings.cards_of(pod.uid):
            moments = [
                each for each in self._rings.moments((pod.uid, uuid), then) if each.at <= then + 1
            ]
            card, peak = tick.observation.cards.get(uuid), peak_of(moments) or 0
            if card is not None and peak > most:
                most, best = peak, (card.card, PastUse(moments, then, at))
        return best

    def _past(self, verdict: Verdict) -> PastUse:
        now = self._clock()
        moments = self._rings.moments((verdict.pod.uid, verdict.uuid), now)
        return PastUse(moments, now, self._timestamp())

    def _restore(self) -> None:
        """Take over what an agent of this node has stored, as soon as that has been read."""
        found = None if self._keeper is None else self._keeper.found
        if found is not None and found is not self._found:
            self._found, self._kept = found, found.records
            self._known = added(self._known, found.records)

    def _store(self) -> None:
        """Have stored what has changed since the last time, once what is stored is known."""
        ready = self._keeper is not None and self._found is not None
        if ready and self._known.records != self._kept and self._keeper is not None:
            self._kept, self._kept_at = self._known.records, self._clock()
            self._keeper.store(self._known)

    def _page(self) -> str:
        return write_records(self._known) + "\n"

    def _running_page(self) -> str:
        """Say what has happened so far to the pods that are there."""
        tick = self._last
        found: list[Record] = []
        for verdict in () if tick is None else tick.decision.verdicts:
            if verdict.use is not None and tick is not None:
                card = card_moment(verdict, tick)
                record = running_record(verdict, self._past(verdict), card)
                found += [] if record is None else [record]
        return write_records(self._known._replace(records=together(found, ()))) + "\n"


def _age(at: str, now: str) -> float:
    """Return how long ago something was; what has no date was now."""
    try:
        return max(read_moment(now, "now") - read_moment(at, "finishedAt"), 0.0)
    except InvalidError:
        return 0.0
