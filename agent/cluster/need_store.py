"""
What a node's models have needed, in a ConfigMap: read once at the start, written whole by one
thread, and read again where somebody else has written it.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import TYPE_CHECKING, Final

from agent.clock import timestamp
from agent.model.need import StoredNeed
from agent.need import both, configmap, stored_need
from gpufence.errors import GpufenceError
from gpufence.need import NodeNeed, need_configmap
from gpufence.text import printable
from kube import ConflictError, ForbiddenError, KubeError, NotFoundError, core

if TYPE_CHECKING:
    from agent.cluster.settings import ClusterSettings
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)

_COMPLAINT_SECONDS: Final = 600.0
_ATTEMPTS: Final = 3
_MOST_CHARACTERS: Final = 300  # of what is wrong with a text that somebody else wrote


class NeedStore:
    """
    `found` is what was stored when it was last read, None before that. What does not get through is
    in the next word too: nothing waits but the last.

    Whoever may not read it, or finds something that no agent wrote, begins with nothing.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._waiting: NodeNeed | None = None
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._stop_by = 0.0
        self._thread: threading.Thread | None = None
        self._complained_at = -_COMPLAINT_SECONDS
        self._version: str | None = None
        self.found: StoredNeed | None = None

    def start(self, client: Client) -> None:
        self._thread = threading.Thread(target=self._run, args=(client,), name="need", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for as long as the settings allow, and end."""
        self._stop_by = time.monotonic() + self._settings.close_seconds
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(self._settings.close_seconds)

    def store(self, need: NodeNeed) -> None:
        with self._changed:
            self._waiting = need
            self._changed.notify_all()

    def _run(self, client: Client) -> None:
        self._begin(client)
        while (need := self._next()) is not None:
            try:
                self._write(client, need)
            except KubeError as error:
                self._complain(error)

    def _begin(self, client: Client) -> None:
        """Read it, however long that takes: what nobody has read is not written over."""
        failures = 0
        while not self._stop.is_set():
            try:
                self._read(client)
            except ForbiddenError as error:
                self._complain(error)
                self.found = self._nothing
                return
            except KubeError as error:
                failures += 1
                self._complain(error)
                pause = self._settings.backoff.delay_seconds(failures, random.random())  # noqa: S311 (spreads load, guards nothing)
                self._stop.wait(pause)
            else:
                return

    def _next(self) -> NodeNeed | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or self._stop.is_set())
            need, self._waiting = self._waiting, None
            return need

    def _read(self, client: Client) -> StoredNeed:
        namespace, node = self._settings.system_namespace, self._settings.node
        path = core("namespaces", namespace, "configmaps", need_configmap(node))
        try:
            raw = client.get(path, timeout_seconds=self._seconds())
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

    def _write(self, client: Client, need: NodeNeed) -> None:
        """
        Write it in place of what was read, or of both together where somebody else has written.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            if self._version is None:
                need = both(need, self._read(client).need)
            try:
                answer = self._send(client, configmap(need, timestamp(), self._version or ""))
            except (ConflictError, NotFoundError):
                self._version = None
                if attempt == _ATTEMPTS:
                    raise
            else:
                self._version = str(answer["metadata"].get("resourceVersion", ""))
                return

    def _send(self, client: Client, body: JsonObject) -> JsonObject:
        namespace, node = self._settings.system_namespace, self._settings.node
        if self._version:
            path = core("namespaces", namespace, "configmaps", need_configmap(node))
            return client.put(path, body, timeout_seconds=self._seconds())
        beside = core("namespaces", namespace, "configmaps")
        return client.post(beside, body, timeout_seconds=self._seconds())

    @property
    def _nothing(self) -> StoredNeed:
        return StoredNeed(NodeNeed(self._settings.node))

    def _seconds(self) -> float:
        if not self._stop.is_set():
            return self._settings.request_seconds
        return max(self._stop_by - time.monotonic(), 0.1)

    def _complain(self, error: KubeError) -> None:
        """Say once in a while what is wrong: the next attempt is minutes away."""
        if time.monotonic() - self._complained_at < _COMPLAINT_SECONDS:
            return
        self._complained_at = time.monotonic()
        forbidden = isinstance(error, ForbiddenError)
        remedy = "; apply the agent's rights of this version" if forbidden else ""
        _log.warning("what models needed is not stored: %s%s", error, remedy)
