"""The part of a tick that remembers how much memory models need, for longer than an agent lives."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from zlib import crc32

from agent.model.need import NO_NEED, NeedLook
from agent.need import entered, evicted, need_of, restored

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.model.decision import Verdict
    from agent.model.need import NeedLedger, NeedPolicy, StoredNeed
    from agent.model.use import Observation
    from agent.ports import ClusterPort

_log = logging.getLogger(__name__)
_DAY: Final = len("2026-11-19")
_PARTS: Final = 1000


class NeedWatch:
    """
    Owns the ledger. Nothing is entered before what is stored has been read: pods come from the same
    API server, and who was counted before is not to be counted again.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        node: str,
        policy: NeedPolicy,
        clock: Callable[[], float],
        timestamp: Callable[[], str],
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._policy = policy
        self._clock = clock
        self._timestamp = timestamp
        self._stored: StoredNeed | None = None
        self._before: Observation | None = None
        self._kept = NO_NEED
        # Agents that are rolled out together do not write together.
        early = crc32(node.encode()) % _PARTS / _PARTS * policy.write_seconds
        self._kept_at = clock() - early
        self.ledger = NO_NEED

    def look(self, observation: Observation, gap_seconds: float) -> NeedLedger:
        """
        Take in one observation of the node.

        A bug in it is logged, and what is known stays: the fence does not depend on it.
        """
        try:
            self._look(observation, gap_seconds)
        except Exception:  # noqa: BLE001 - fencing has to go on
            _log.exception("what models need could not be entered")
        self._before = observation
        return self.ledger

    def evicted(self, verdict: Verdict) -> None:
        self.ledger = evicted(self.ledger, verdict, self._today())

    def store(self) -> None:
        """Have stored what has changed since the last time."""
        if self._stored is not None and self.ledger.rows is not self._kept.rows:
            self._kept, self._kept_at = self.ledger, self._clock()
            self._cluster.store_need(need_of(self.ledger, self._node))

    def _look(self, observation: Observation, gap_seconds: float) -> None:
        stored = self._cluster.stored_need()
        if stored is None:
            return
        if stored is not self._stored:
            first = self._stored is None
            self._stored, self.ledger = stored, restored(self.ledger, stored)
            self._kept = self.ledger if first else self._kept
        now = self._clock()
        look = NeedLook(observation, self._before, now, self._today(), gap_seconds)
        self.ledger = entered(self.ledger, look)
        if now - self._kept_at >= self._policy.write_seconds:
            self.store()

    def _today(self) -> str:
        return self._timestamp()[:_DAY]
