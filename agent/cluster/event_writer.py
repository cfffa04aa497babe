"""Events on their way to the API server: a short queue, one thread, and no waiting for anybody."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from agent.cluster.settings import COMPONENT
from agent.events import EventCreate, is_urgent
from kube import (
    ConflictError,
    ForbiddenError,
    KubeError,
    NotFoundError,
    PatchType,
    ServerError,
    ThrottledError,
    UnreachableError,
    core,
)
from kube.events import EventPlace, EventText, EventTimes, Reporter, make_event, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.cluster.settings import ClusterSettings
    from agent.events import EventPatch, Notice
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)

_PASSING: Final = (UnreachableError, ThrottledError, ServerError)


class WrittenEvent(NamedTuple):
    """An Event of ours as the API server knows it; `first` is when it began."""

    namespace: str
    name: str
    first: str


def name_event(notice: Notice, unique: str, now: str) -> WrittenEvent:
    """Name a new Event."""
    return WrittenEvent(*place_of(notice.regarding, COMPONENT, unique), now)


def event(notice: Notice, event_name: WrittenEvent, node: str, count: int, now: str) -> JsonObject:
    return make_event(
        notice.regarding,
        EventText(notice.reason, notice.message),
        Reporter(COMPONENT, node, host=node),
        EventPlace(event_name.namespace, event_name.name),
        EventTimes(event_name.first, now, count),
    )


def event_patch(notice: Notice, count: int, now: str) -> JsonObject:
    return {"count": count, "lastTimestamp": now, "message": notice.message}


class EventWriter:
    """
    Writes Events, evictions first; those that find no place or no answer are dropped and counted.

    A namespace that forbids Events, as one with a quota does, is not given time again for a while:
    all others would wait for it.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._queue: deque[EventCreate | EventPatch] = deque()
        self._urgent: deque[EventCreate | EventPatch] = deque()
        self._forbidding: OrderedDict[str, float] = OrderedDict()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._stop_by = 0.0
        self._known: OrderedDict[int, WrittenEvent] = OrderedDict()
        self._thread: threading.Thread | None = None
        self.written = 0
        self.dropped = 0
        self.refused = 0

    def start(self, client: Client) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(client,), name="events", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for as long as the settings allow, and end."""
        self._stop_by = time.monotonic() + self._settings.close_seconds
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(self._settings.close_seconds)

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        with self._changed:
            for item in writes:
                waiting = self._urgent if is_urgent(item.notice) else self._queue
                if len(waiting) < self._settings.queued_events:
                    waiting.append(item)
                else:
                    self.dropped += 1
            self._changed.notify_all()

    def _run(self, client: Client) -> None:
        while (item := self._next()) is not None:
            self._try(client, item)

    def _next(self) -> EventCreate | EventPatch | None:
        with self._changed:
            self._changed.wait_for(lambda: self._urgent or self._queue or self._stop.is_set())
            waiting = self._urgent or self._queue
            if not waiting or (self._stop.is_set() and time.monotonic() > self._stop_by):
                return None
            return waiting.popleft()

    def _try(self, client: Client, item: EventCreate | EventPatch) -> None:
        """Write one Event, for a while if the API server is away."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        unique = uuid4().hex[:16]
        forbidden_until = time.monotonic() + self._patience(item.notice)
        for attempt in range(1, self._settings.event_attempts + 1):
            try:
                self._write(client, item, unique, now)
            except KubeError as error:
                last = error
                if self._stop.is_set() or not _may_pass(error, forbidden_until):
                    break
                pause = self._settings.backoff.delay_seconds(attempt, random.random())  # noqa: S311 (spreads load, guards nothing)
                self._stop.wait(pause)
            else:
                self.written += 1
                return
        self._give_up(item, last)

    def _patience(self, notice: Notice) -> float:
        """Return for how long an Event is tried that is forbidden."""
        known_until = self._forbidding.get(notice.regarding.namespace, 0.0)
        return 0.0 if time.monotonic() < known_until else self._settings.forbidden_seconds

    def _give_up(self, item: EventCreate | EventPatch, error: KubeError) -> None:
        if isinstance(error, ForbiddenError):
            until = time.monotonic() + self._settings.forbidding_seconds
            self._forbidding[item.notice.regarding.namespace] = until
            while len(self._forbidding) > self._settings.queued_events:
                self._forbidding.popitem(last=False)
        if isinstance(error, _PASSING):
            self.dropped += 1
            _log.warning("an Event %s is dropped: %s", item.notice.reason, error)
        else:
            self.refused += 1
            self._complain(item, error)

    def _write(self, client: Client, item: EventCreate | EventPatch, unique: str, now: str) -> None:
        known = self._known.get(item.serial)
        if not isinstance(item, EventCreate) and known is not None:
            try:
                client.patch(
                    core("namespaces", known.namespace, "events", known.name),
                    event_patch(item.notice, item.count, now),
                    PatchType.MERGE,
                    timeout_seconds=self._settings.request_seconds,
                )
            except NotFoundError:
                pass  # it has expired: written anew, with the count that it has reached
            else:
                self._known.move_to_end(item.serial)
                return
        self._create(client, item, known, unique, now)

    def _create(
        self,
        client: Client,
        item: EventCreate | EventPatch,
        known: WrittenEvent | None,
        unique: str,
        now: str,
    ) -> None:
        count = 1 if isinstance(item, EventCreate) else item.count
        new = name_event(item.notice, unique, now if known is None else known.first)
        with suppress(ConflictError):  # the first try got through, only its answer did not
            client.post(
                core("namespaces", new.namespace, "events"),
                event(item.notice, new, self._settings.node, count, now),
                timeout_seconds=self._settings.request_seconds,
            )
        self._known[item.serial] = new
        while len(self._known) > self._settings.remembered_events:
            self._known.popitem(last=False)

    def _complain(self, item: EventCreate | EventPatch, error: KubeError) -> None:
        # Namespaces that go away take no new Events, and that is nobody's mistake.
        going = isinstance(error, NotFoundError) or _is_terminating(error)
        level = logging.DEBUG if going else logging.WARNING
        _log.log(level, "an Event %s is refused: %s", item.notice.reason, error)


def _may_pass(error: KubeError, forbidden_until: float) -> bool:
    """
    Return whether a failed attempt is worth another one.

    An API server that has just started forbids everything until it has read its rules; a
    namespace's quota forbids as well, for long, and must not hold up everybody else's Events.
    """
    if isinstance(error, ForbiddenError):
        return time.monotonic() < forbidden_until and not _is_terminating(error)
    return isinstance(error, _PASSING)


def _is_terminating(error: KubeError) -> bool:
    return isinstance(error, ForbiddenError) and any(
        cause.reason == "NamespaceTerminating" for cause in error.causes
    )
