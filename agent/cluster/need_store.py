"""
What a node's models have needed, in a ConfigMap: read once at the start, written whole by one
thread, and read again where another agent has written it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from agent.clock import timestamp
from agent.model.need import StoredNeed
from agent.need import both, configmap, stored_need
from gpufence.errors import GpufenceError
from gpufence.need import NodeNeed, need_configmap
from gpufence.text import printable
from kube import ConflictError, ForbiddenError, NotFoundError, core
from kube.background import Background

if TYPE_CHECKING:
    from agent.cluster.settings import ClusterSettings
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
_MOST_CHARACTERS: Final = 300  # of what is wrong with a text that was written by others


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
