"""
Keep a handler's picture of a collection true: list, watch, and begin again when the thread tears.
"""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from kube.errors import (
    ForbiddenError,
    GoneError,
    KubeError,
    ReplyError,
    ThrottledError,
    UnreachableError,
)
from kube.repeating import LONGEST_OBEDIENCE_SECONDS, Repeating, SystemClock
from kube.watch import Feed, Source, WatchSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube.client import Client
    from kube.repeating import Clock
    from kube.watch import ChangeType


T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_log = logging.getLogger(__name__)
_STOP_SECONDS = 0.9
_RESUMABLE = (UnreachableError, ThrottledError)

# What a server that was away says first: old versions are gone, and its rules not read yet. It is
# back, so that the pauses that an outage has lengthened begin anew.
_BACK = (GoneError, ForbiddenError)


class Handler(Protocol[T_contra]):
    """Whoever wants to know; called from the reflector's thread, one call at a time."""

    def replace(self, objects: Sequence[T_contra]) -> None:
        """Take this as the whole collection, whatever was known before."""
        ...

    def apply(self, change: ChangeType, item: T_contra) -> None:
        """Take one change. A change may come twice: the last word about an object counts."""
        ...


@dataclass(frozen=True, slots=True)
class ReflectorState:
    """
    How much the handler's picture is worth.

    `last_contact` is the monotonic time of the last byte from the server, None before the first:
    while the collection is quiet, bookmarks or new watches renew it about once a minute. `failing`
    from a failure on until the next byte.
    """

    synced: bool = False
    last_contact: float | None = None
    lists: int = 0
    failures_in_a_row: int = 0
    last_error: str | None = None
    failing: bool = False

    def is_fresh(self, now: float, outage_seconds: float, silence_seconds: float) -> bool:
        """
        Return whether what is known may be acted on.

        A quiet watch is trusted for long, one that keeps failing only for as long as an API server
        takes to hand over to another.
        """
        if not self.synced or self.last_contact is None:
            return False
        return now - self.last_contact <= (outage_seconds if self.failing else silence_seconds)


class Reflector(Generic[T]):
    """
    Follow one source for one handler, for ever.

    Errors never end it: connection trouble continues the watch where it was, anything else lists
    anew, both with growing pauses. A bug in the handler is logged and answered by a new list.
    """

    def __init__(
        self,
        client: Client,
        source: Source[T],
        handler: Handler[T],
        settings: WatchSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client.dedicated()
        self._settings = settings or WatchSettings()
        self._feed = Feed(self._client, source, self._settings)
        self._path = source.path
        self._handler = handler
        self._clock = clock or SystemClock()
        self._repeating = Repeating(
            f"reflector {source.path}",
            self._round,
            finish=self._client.close,
            jitter=0.0,
            clock=self._clock,
        )
        self._synced = threading.Event()
        self._last_contact: float | None = None
        self._last_error: str | None = None
        self._lists = 0
        self._failures = 0
        self._failing = False
        self._away = False
        self._began = 0.0
        self._moved = False

    @property
    def state(self) -> ReflectorState:
        return ReflectorState(
            synced=self._synced.is_set(),
            last_contact=self._last_contact,
            lists=self._lists,
            failures_in_a_row=self._failures,
            last_error=self._last_error,
            failing=self._failing,
        )

    @property
    def running(self) -> bool:
        """Return whether it follows, or still has to end."""
        return self._repeating.running

    def wait_until_synced(self, seconds: float) -> bool:
        """Wait until the handler has had the whole collection once; return whether it has."""
        return self._synced.wait(seconds)

    def start(self) -> None:
        """Follow in a thread of its own, which does not keep the program alive."""
        self._repeating.start()

    def end(self) -> None:
        """Begin to end, and wait for nothing."""
        self._repeating.end()
        self._client.abort()

    def stop(self) -> None:
        """
        End within a second, even in the middle of a read; no call of the handler begins afterwards.

        Only a connection that is just being made outlives that, idle, by its connect timeout. The
        handler itself may call this.
        """
        self.end()
        self._repeating.stop(_STOP_SECONDS)

    def _round(self) -> float:
        """List if need be, watch until that ends, and tell how long to pause."""
        self._began, self._moved = self._clock.monotonic(), False
        try:
            self._follow()
        except KubeError as error:
            return self._failed(error, resume=isinstance(error, _RESUMABLE))
        except Exception as error:  # noqa: BLE001 (a bug of the handler must not end the watching)
            _log.exception("the reader of %s failed; listing anew", self._path)
            return self._failed(error, resume=False)
        return 0.0

    def _follow(self) -> None:
        if self._feed.version is None:
            self._list()
        self._began = self._clock.monotonic()
        changes = self._feed.watch(self._clock.chance(), self._touch)
        with closing(changes):
            for change in changes:
                if self._repeating.stopped:
                    return
                if change is not None:
                    self._handler.apply(*change)
                self._moved = True
                self._forgive()
        self._forgive()
        if not self._moved and self._lived() < self._settings.settled_seconds:
            raise UnreachableError(f"GET {self._path}: the server ended the watch at once")

    def _list(self) -> None:
        objects = self._feed.read_all()
        self._touch()
        if self._repeating.stopped:
            return
        self._handler.replace(objects)
        self._lists += 1
        self._synced.set()

    def _failed(self, error: Exception, *, resume: bool) -> float:
        if self._repeating.stopped:
            return 0.0
        self._forgive()
        if self._away and isinstance(error, _BACK):
            self._failures = 0
        self._away = resume
        self._failures += 1
        self._failing = True
        self._last_error = str(error) or type(error).__name__
        if not resume:
            self._feed.version = None
        pause = self._settings.backoff.delay_seconds(self._failures, self._clock.chance())
        asked = error.retry_after_seconds if isinstance(error, ReplyError) else None
        pause = max(pause, min(asked or 0.0, LONGEST_OBEDIENCE_SECONDS))
        then = "watching on" if resume else "listing anew"
        _log.warning("%s; %s in %.1f s", self._last_error, then, pause)
        return pause

    def _forgive(self) -> None:
        """
        Forget past failures once a watch proved good: it moved and lasted, or lasted long.

        A list alone proves nothing, or a server that breaks every watch would be listed hotly.
        """
        lived = self._lived()
        if lived >= self._settings.backoff.limit_seconds or (
            self._moved and lived >= self._settings.settled_seconds
        ):
            if self._failures:
                _log.info("GET %s: watching again", self._path)
            self._failures, self._last_error = 0, None

    def _lived(self) -> float:
        return self._clock.monotonic() - self._began

    def _touch(self) -> None:
        self._last_contact = self._clock.monotonic()
        self._failing = False


class Store(Generic[T]):
    """
    Objects by key, the handler of a reflector; None stands for one that is of no concern.

    It is changed in place, since copying fifty thousand pods for each that changes would take a
    core. `known` once the whole collection has been read, which is a change too; each change is
    counted, and then reported by `on_change`. Equal objects stay the very same, so that nothing is
    read again that says the same.
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._items: dict[str, T] = {}
        self._lent = False
        self.known = False
        self.changes = 0

    @property
    def items(self) -> Mapping[str, T]:
        """Return all that is known: a mapping that never changes, the same one until a change."""
        with self._lock:
            self._lent = True
            return self._items

    def get(self, key: str) -> T | None:
        """Return one object; for a few of many this is cheaper than `items`."""
        return self._items.get(key)

    def __len__(self) -> int:
        return len(self._items)

    def replace(self, objects: Sequence[tuple[str, T | None]]) -> None:
        with self._lock:
            before = self._items
            items = {
                key: before[key] if before.get(key) == new else new
                for key, new in objects
                if new is not None
            }
            if self.known and items == before:
                return
            self._items, self._lent, self.known = items, False, True
            self.changes += 1
        self._report()

    def apply(self, change: ChangeType, item: tuple[str, T | None]) -> None:
        key, new = item
        kept = None if change == "DELETED" else new
        with self._lock:
            # Most objects report now and then, and almost never about what is kept of them.
            if self._items.get(key) == kept:
                return
            if self._lent:
                self._items, self._lent = dict(self._items), False
            if kept is None:
                del self._items[key]
            else:
                self._items[key] = kept
            self.changes += 1
        self._report()

    def _report(self) -> None:
        if self._on_change is not None:
            self._on_change()
