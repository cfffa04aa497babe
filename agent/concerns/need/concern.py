"""How much memory models need, entered tick by tick, for longer than an agent lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self
from zlib import crc32

from agent.concern import Check, Concern
from agent.concerns.need.ledger import (
    both,
    configmap,
    entered,
    evicted,
    need_of,
    restored,
    stored_need,
)
from agent.concerns.need.model import NO_NEED, NeedLook, NeedPolicy, StoredNeed
from agent.model.decision import Answer
from agent.node_store import NodeStore
from gpufence import names
from gpufence.need import NodeNeed, write_bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster import ClusterSettings
    from agent.concern import Ground
    from agent.model.state import TickResult
    from agent.model.use import Observation
    from kube import Client, JsonObject

_DAY: Final = len("2026-11-19")
_PARTS: Final = 1000


class NeedKeeper(Protocol):
    """Where needs are stored; `NeedStore` is the real thing."""

    found: StoredNeed | None
    """What an agent of this node has stored, as last read; None before that."""

    def start(self) -> None: ...

    def store(self, need: NodeNeed) -> None: ...

    def stop(self) -> None: ...


class NeedConcern(Concern):
    """
    Owns the ledger. Nothing is entered before what is stored has been read: pods come from the same
    API server, and a pod that was counted before is not to be counted again.
    """

    name = "need"
    title = "What models have needed"
    settings = NeedPolicy

    def __init__(
        self,
        policy: NeedPolicy,
        node: str,
        needs: NeedKeeper | None,
        clock: Callable[[], float],
        timestamp: Callable[[], str],
    ) -> None:
        self._policy = policy
        self._node = node
        self._needs = needs
        self._clock = clock
        self._timestamp = timestamp
        self._stored: StoredNeed | None = None
        self._before: Observation | None = None
        self._kept = NO_NEED
        # Agents that are rolled out together do not write together.
        early = crc32(node.encode()) % _PARTS / _PARTS * policy.write_seconds
        self._kept_at = clock() - early
        self.ledger = NO_NEED

    @classmethod
    def checks(cls, client: Client, acting: Client, where: ClusterSettings) -> list[Check]:
        del acting
        return [NeedStore.check(client, where)]

    @classmethod
    def on(cls, ground: Ground, settings: NeedPolicy) -> Self:
        at = ground.cluster
        needs = None if at is None else NeedStore(at.client, at.settings)
        return cls(settings, ground.node, needs, ground.clock, ground.timestamp)

    def start(self) -> None:
        if self._needs is not None:
            self._needs.start()

    def look(self, tick: TickResult) -> None:
        try:
            self._enter(tick)
        finally:
            self._before = tick.observation

    def pages(self) -> Mapping[str, Callable[[], str]]:
        return {"/v1/need": self._page}

    def stop(self) -> None:
        """Have stored what was remembered since it was stored last."""
        self._store()
        if self._needs is not None:
            self._needs.stop()

    def _enter(self, tick: TickResult) -> None:
        today = self._timestamp()[:_DAY]
        for act in tick.acts:
            if act.result.answer is Answer.ACCEPTED:
                self.ledger = evicted(self.ledger, act.verdict, today)
        stored = None if self._needs is None else self._needs.found
        if stored is None:
            return
        if stored is not self._stored:
            first = self._stored is None
            self._stored, self.ledger = stored, restored(self.ledger, stored)
            self._kept = self.ledger if first else self._kept
        now = self._clock()
        look = NeedLook(tick.observation, self._before, now, today, tick.gap_seconds)
        self.ledger = entered(self.ledger, look)
        if now - self._kept_at >= self._policy.write_seconds:
            self._store()

    def _store(self) -> None:
        """Have stored what has changed since the last time."""
        known = self._stored is not None and self.ledger.rows is not self._kept.rows
        if self._needs is not None and known:
            self._kept, self._kept_at = self.ledger, self._clock()
            self._needs.store(need_of(self.ledger, self._node))

    def _page(self) -> str:
        return write_bounded(need_of(self.ledger, self._node), self._timestamp()[:_DAY]) + "\n"


class NeedStore(NodeStore[NodeNeed, StoredNeed]):
    """Keeps what models of the node have needed."""

    title = "needs of models"
    prefix = names.NEED_PREFIX

    def nothing(self, node: str) -> StoredNeed:
        return StoredNeed(NodeNeed(node))

    def parsed(self, raw: JsonObject, node: str, now: str) -> StoredNeed:
        return stored_need(raw, node, now)

    def both(self, kept: NodeNeed, found: StoredNeed) -> NodeNeed:
        return both(kept, found.need)

    def whole(self, kept: NodeNeed, now: str, version: str) -> JsonObject:
        return configmap(kept, now, version)
