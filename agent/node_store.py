"""What an agent keeps for the next one of its node, in a ConfigMap that it alone may write."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from agent.clock import timestamp
from agent.concern import DRY_RUN, Check
from gpufence.errors import GpufenceError
from gpufence.nodes import configmap_name
from gpufence.text import printable
from kube import ConflictError, ForbiddenError, NotFoundError, core
from kube.background import Background

if TYPE_CHECKING:
    from agent.cluster import ClusterSettings
    from kube import Client, JsonObject

K = TypeVar("K")
F = TypeVar("F")

_ATTEMPTS: Final = 3
_MOST_CHARACTERS: Final = 300  # of what is wrong with a text that was written by others
_log = logging.getLogger(__name__)


class NodeStore(Generic[K, F]):
    """
    Keeps the last word of a kind; `found` is what was stored when it was last read, None before
    that. An agent that may not read it, or finds something that no agent wrote, begins with
    nothing.
    """

    title: ClassVar[str]
    prefix: ClassVar[str]

    def __init__(self, client: Client, settings: ClusterSettings) -> None:
        self._client = client
        self._settings = settings
        self._version: str | None = None
        self.found: F | None = None
        # What waits is one word: to write what is there, or, at first, only to read it.
        self._background: Background[str, K | None] = Background(
            self.title,
            self._write,
            keep=1,
            forbidden="apply the agent's rights of this version",
        )

    @classmethod
    def check(cls, client: Client, where: ClusterSettings) -> Check:
        """Return the right that it needs."""
        name = configmap_name(cls.prefix, where.node)
        path = core("namespaces", where.system_namespace, "configmaps", name)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        return Check(cls.title, partial(client.put, path, body, DRY_RUN), "can be stored")

    def nothing(self, node: str) -> F:
        """Return what is found where nothing is stored."""
        raise NotImplementedError

    def parsed(self, raw: JsonObject, node: str, now: str) -> F:
        """Read the object; raises GpufenceError for what no agent of the node wrote."""
        raise NotImplementedError

    def both(self, kept: K, found: F) -> K:
        """Put together what is to be kept and what another agent has stored."""
        raise NotImplementedError

    def whole(self, kept: K, now: str, version: str) -> JsonObject:
        """Make the object; `version` is the one it replaces, empty for a new one."""
        raise NotImplementedError

    def start(self) -> None:
        self._background.put(self._settings.node, None)
        self._background.start()

    def stop(self) -> None:
        """Write what waits, for as long as the settings allow, and end."""
        self._background.stop(self._settings.close_seconds)

    def store(self, kept: K) -> None:
        """Have it stored; only the last word counts."""
        self._background.put(self._settings.node, kept)

    def _write(self, _: str, kept: K | None) -> None:
        """Write it in place of what was read, or of both where another agent has written."""
        if kept is None:
            self._read()
            return
        for attempt in range(1, _ATTEMPTS + 1):
            if self._version is None:
                kept = self.both(kept, self._read())
            try:
                answer = self._send(self.whole(kept, timestamp(), self._version or ""))
            except (ConflictError, NotFoundError):
                self._version = None
                if attempt == _ATTEMPTS:
                    raise
            else:
                self._version = str(answer["metadata"].get("resourceVersion", ""))
                return

    def _read(self) -> F:
        node = self._settings.node
        path = core("namespaces", self._settings.system_namespace, "configmaps", self._name)
        try:
            raw = self._client.get(path, timeout_seconds=self._seconds)
        except ForbiddenError:
            self.found = self.found or self.nothing(node)
            raise
        except NotFoundError:
            self._version, self.found = "", self.nothing(node)
            return self.found
        try:
            self.found = self.parsed(raw, node, timestamp())
        except GpufenceError as error:
            why = printable(str(error), _MOST_CHARACTERS)
            _log.warning("%s: what is stored is unreadable, and written anew: %s", self.title, why)
            self.found = self.nothing(node)
        self._version = str(raw["metadata"].get("resourceVersion", ""))
        return self.found

    def _send(self, body: JsonObject) -> JsonObject:
        beside = core("namespaces", self._settings.system_namespace, "configmaps")
        if self._version:
            path = f"{beside}/{self._name}"
            return self._client.put(path, body, timeout_seconds=self._seconds)
        return self._client.post(beside, body, timeout_seconds=self._seconds)

    @property
    def _name(self) -> str:
        return configmap_name(self.prefix, self._settings.node)

    @property
    def _seconds(self) -> float:
        return max(min(self._settings.request_seconds, self._background.left_seconds), 0.1)
