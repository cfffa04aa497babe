"""Asking agents what they see: directly, on demand, a few at the same time, and none for long."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import GpufenceError
from gpufence.snapshot import read_snapshot
from kube import fetch_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpufence.snapshot import Snapshot

_log = logging.getLogger(__name__)

REMEMBERED_SECONDS: Final = 2.0
MOST_ASKED: Final = 8
"""Agents that are asked at the same time."""
MOST_BYTES: Final = 2**22
_PATH: Final = "/v1/snapshot"


class _Answer(NamedTuple):
    """What an agent said, and when it was asked."""

    at: float
    snapshot: Snapshot | None


class AgentClient:
    """
    `addresses` tells where each node's agent is. An answer holds for two seconds, whoever asks, but
    for those who want one of this moment.
    """

    def __init__(
        self,
        addresses: Callable[[], Mapping[str, str]],
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = addresses
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._answers: dict[str, _Answer] = {}
        self._pool = ThreadPoolExecutor(MOST_ASKED, "agents")
        self.asked = 0
        self.silent = 0

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def snapshots(self, nodes: Iterable[str], *, now: bool = False) -> dict[str, Snapshot | None]:
        """
        Return what the agents of nodes see; None of one that does not answer. `now` asks them
        whatever they said before.
        """
        began = self._clock()
        since = began if now else began - REMEMBERED_SECONDS
        names = sorted(set(nodes))
        addresses = self._addresses()
        self._forget(addresses)
        asked = [self._pool.submit(self._ask, name, addresses.get(name), since) for name in names]
        return {name: each.result() for name, each in zip(names, asked, strict=True)}

    def _ask(self, node: str, address: str | None, since: float) -> Snapshot | None:
        if address is None:
            return None
        with self._lock:
            turn = self._turns.setdefault(node, threading.Lock())
        with turn:
            known = self._answers.get(node)
            if known is not None and known.at >= since:
                return known.snapshot
            at = self._clock()
            snapshot = self._fetch(node, address)
            self._answers[node] = _Answer(at, snapshot)
            return snapshot

    def _fetch(self, node: str, address: str) -> Snapshot | None:
        self.asked += 1
        try:
            page = fetch_page(f"{address}{_PATH}", self._timeout_seconds, MOST_BYTES)
            return read_snapshot(page)
        except GpufenceError as error:
            self.silent += 1
            _log.warning("the agent of node %s: %s", node, error)
            return None

    def _forget(self, addresses: Mapping[str, str]) -> None:
        """Forget the agents of nodes that are gone."""
        with self._lock:
            for node in [*self._answers]:
                if node not in addresses:
                    self._answers.pop(node, None)
                    self._turns.pop(node, None)
