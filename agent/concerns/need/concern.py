"""How much memory models need, entered tick by tick, for longer than an agent lives."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, Self
from zlib import crc32

from agent.clock import timestamp
from agent.concern import DRY_RUN, Check, Concern
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
from gpufence.errors import GpufenceError
from gpufence.need import NodeNeed, need_configmap, write_bounded
from gpufence.text import printable
from kube import ConflictError, ForbiddenError, NotFoundError, core
from kube.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster import ClusterSettings
    from agent.concern import Ground
    from agent.model.state import TickResult
    from agent.model.use import Observation
    from kube import Client, JsonObject

_DAY: Final = len("2026-11-19")
_PARTS: Final = 1000
_ATTEMPTS: Final = 3
_MOST_CHARACTERS: Final = 300  # of what is wrong with a text that was written by others
_log = logging.getLogger(__name__)


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
        name = need_configmap(where.node)
        path = core("namespaces", where.system_namespace, "configmaps", name)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        return [Check("needs of models", partial(client.put, path, body, DRY_RUN), "can be stored")]

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


class NeedStore:
    """
    `found` is what was stored when it was last read, None before that; an agent that may not read
    it, or finds something that no agent wrote, begins with nothing.
    """

    def __init__(self, client: Client, settings: ClusterSettings) -> None:
        self._client = client
        self._settings = settings
        self._version: str | None = None
        self.found: StoredNeed | None = None
        # What waits is one word: to write what is there, or, at first, only to read it.
        self._background: Background[str, NodeNeed | None] = Background(
            "needs of models",
            self._write,
            keep=1,
            forbidden="apply the agent's rights of this version",
        )

    def start(self) -> None:
        self._background.put(self._settings.node, None)
        self._background.start()

    def stop(self) -> None:
        """Write what waits, for as long as the settings allow, and end."""
        self._background.stop(self._settings.close_seconds)

    def store(self, need: NodeNeed) -> None:
        """Have it stored; only the last word counts."""
        self._background.put(self._settings.node, need)

    def _write(self, _: str, need: NodeNeed | None) -> None:
        """Write it in place of what was read, or of both where another agent has written."""
        if need is None:
            self._read()
            return
        for attempt in range(1, _ATTEMPTS + 1):
            if self._version is None:
                need = both(need, self._read().need)
            try:
                answer = self._send(configmap(need, timestamp(), self._version or ""))
            except (ConflictError, NotFoundError):
                self._version = None
                if attempt == _ATTEMPTS:
                    raise
            else:
                self._version = str(answer["metadata"].get("resourceVersion", ""))
                return

    def _read(self) -> StoredNeed:
        namespace, node = self._settings.system_namespace, self._settings.node
        path = core("namespaces", namespace, "configmaps", need_configmap(node))
        try:
            raw = self._client.get(path, timeout_seconds=self._seconds)
        except ForbiddenError:
            self.found = self.found or self._nothing
            raise
        except NotFoundError:
            self._version, self.found = "", self._nothing
            return self.found
        try:
            self.found = stored_need(raw, node, timestamp())
        except GpufenceError as error:
            why = printable(str(error), _MOST_CHARACTERS)
            _log.warning("what is stored of models' needs is unreadable, and written anew: %s", why)
            self.found = self._nothing
        self._version = str(raw["metadata"].get("resourceVersion", ""))
        return self.found

    def _send(self, body: JsonObject) -> JsonObject:
        namespace, node = self._settings.system_namespace, self._settings.node
        beside = core("namespaces", namespace, "configmaps")
        if self._version:
            path = f"{beside}/{need_configmap(node)}"
            return self._client.put(path, body, timeout_seconds=self._seconds)
        return self._client.post(beside, body, timeout_seconds=self._seconds)

    @property
    def _nothing(self) -> StoredNeed:
        return StoredNeed(NodeNeed(self._settings.node))

    @property
    def _seconds(self) -> float:
        return max(min(self._settings.request_seconds, self._background.left_seconds), 0.1)
