"""Follow a collection that a cluster may have or not, or let us read or not, now or later."""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kube.errors import ForbiddenError, KubeError, NotFoundError
from kube.informers.reflector import Reflector

if TYPE_CHECKING:
    from kube.client import Client
    from kube.informers.reflector import Handler
    from kube.watch import Source, WatchSettings

T = TypeVar("T")

_log = logging.getLogger(__name__)

ASK_SECONDS: Final = 120.0
"""A collection that is made later is found after so long."""
GIVEN_UP_SECONDS: Final = 30.0
"""
A watch that fails for so long is ended, and it is asked whether the collection is still there.
"""
_RETRY_SECONDS: Final = 2.0
_MOST_FAILURES: Final = 5


class OptionalWatch(Generic[T]):
    """
    A reflector where there is something to reflect. What was known stays known while the server is
    away, and is forgotten once it says that the collection is gone or not ours to read.

    `absent` says why there is nothing, empty where there is or nobody has answered yet.
    """

    def __init__(
        self,
        client: Client,
        source: Source[T],
        handler: Handler[T],
        pace: WatchSettings | None = None,
        ask_seconds: float = ASK_SECONDS,
    ) -> None:
        self._client = client
        self._source = source
        self._handler = handler
        self._pace = pace
        self._ask_seconds = ask_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"optional {source.path}", daemon=True
        )
        self._reflector: Reflector[T] | None = None
        self._failures = 0
        self.absent = ""

    @property
    def synced(self) -> bool:
        """Return whether the collection has been read, as long as it is there."""
        reflector = self._reflector
        return reflector is not None and reflector.state.synced

    @property
    def settled(self) -> bool:
        """
        Return whether it is known that there is nothing, or what there is; a server that fails to
        say so again and again is waited for no longer.
        """
        return bool(self.absent) or self.synced or self._failures >= _MOST_FAILURES

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        reflector = self._reflector
        if reflector is not None:
            reflector.stop()
        if self._thread.ident is not None:
            self._thread.join(_RETRY_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            pause = self._look()
            self._stop.wait(pause * (1 + random.random() / 4))  # noqa: S311 (spreads load, guards nothing)

    def _look(self) -> float:
        """Begin to follow what is there, end what fails for good; return how long to pause."""
        if self._reflector is not None and not _is_lost(self._reflector):
            return _RETRY_SECONDS
        try:
            self._client.page(self._source.path, lambda _: None, {**self._source.query, "limit": 1})
        except (ForbiddenError, NotFoundError) as error:
            self._end(str(error))
            return self._ask_seconds
        except KubeError:
            self._failures += 1
            return _RETRY_SECONDS
        if self._reflector is None:
            self._begin()
        return _RETRY_SECONDS

    def _begin(self) -> None:
        reflector = Reflector(self._client, self._source, self._handler, self._pace)
        reflector.start()
        self._reflector, self.absent = reflector, ""
        _log.info("following %s", self._source.path)

    def _end(self, why: str) -> None:
        if self._reflector is not None:
            self._reflector.stop()
            self._reflector = None
        if not self.absent:
            self._handler.replace([])
            _log.info("not following %s: %s", self._source.path, why)
        self.absent = why


def _is_lost(reflector: Reflector[T]) -> bool:
    state = reflector.state
    last = state.last_contact
    return state.failing and (last is None or time.monotonic() - last > GIVEN_UP_SECONDS)
