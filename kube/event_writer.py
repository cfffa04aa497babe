"""Events on their way to the API server: a short queue, one thread, and nothing waits for them."""

from __future__ import annotations

import itertools
import logging
import time
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from gpufence.event_text import with_link
from gpufence.times import write_moment
from kube.background import Background
from kube.client import PatchType
from kube.errors import ConflictError, ForbiddenError, NotFoundError, ReplyError
from kube.events import EventPlace, EventTimes, make_event, place_of
from kube.kinds import core

if TYPE_CHECKING:
    from collections.abc import Hashable

    from kube.client import Client
    from kube.events import EventText, Regarding, Reporter
    from kube.repeating import Clock

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 256
"""Events that wait for the API server, and as many urgent ones; more are dropped."""
MOST_REMEMBERED: Final = 1024
"""Events whose count may still rise; an Event itself lives for an hour."""
REQUEST_SECONDS: Final = 10.0


class _Happened(NamedTuple):
    """What is to be said, how often it has happened by now, first and last when."""

    about: Regarding
    text: EventText
    times: int
    first: float
    last: float


class _Written(NamedTuple):
    """An Event of ours as the API server knows it, or will once it is `made`."""

    place: EventPlace
    first: float
    made: bool


class EventWriter:
    """
    Writes Events, urgent ones first; those that find no place or no answer are dropped and counted.

    While a namespace forbids Events, as one with a quota does, only its own wait.
    """

    def __init__(
        self,
        reporter: Reporter,
        *,
        help_url: str = "",
        keep: int = MOST_WAITING,
        request_seconds: float = REQUEST_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        self._reporter = reporter
        self._help_url = help_url
        self._request_seconds = request_seconds
        self._client: Client  # from the start on
        self._known: OrderedDict[Hashable, _Written] = OrderedDict()
        self._serials = itertools.count()
        self._needless = 0
        self._background: Background[Hashable, _Happened] = Background(
            "Events",
            self._write,
            keep=keep,
            lane=lambda _, said: said.about.namespace,
            merge=lambda old, new: new._replace(first=old.first),
            clock=clock,
        )

    @property
    def written(self) -> int:
        return self._background.written - self._needless

    @property
    def dropped(self) -> int:
        """Return how many found no place in the queue, or no answer."""
        return self._background.dropped

    @property
    def refused(self) -> int:
        """Return how many the API server did not take."""
        return self._background.refused + self._needless

    def start(self, client: Client) -> None:
        """Begin to write as this client's account."""
        self._client = client
        self._background.start()

    def stop(self, seconds: float) -> None:
        """Write what waits, for so long, and end."""
        self._background.stop(seconds)

    def say(self, about: Regarding, text: EventText) -> None:
        """Have an Event written that is said once."""
        self.count(("once", next(self._serials)), about, text)

    def count(
        self,
        serial: Hashable,
        about: Regarding,
        text: EventText,
        times: int = 1,
        *,
        urgent: bool = False,
    ) -> None:
        """Have an Event written; one of this serial that is there says that so many happened."""
        text = text._replace(message=with_link(text.message, self._help_url, text.anchor))
        now = time.time()
        self._background.put(serial, _Happened(about, text, times, now, now), urgent=urgent)

    def _write(self, serial: Hashable, said: _Happened) -> None:
        try:
            self._send(serial, said)
        except (NotFoundError, ForbiddenError) as error:
            # Namespaces that go away take no new Events, and that is nobody's mistake.
            if isinstance(error, ForbiddenError) and not _is_terminating(error):
                raise
            _log.debug("an Event %s is refused: %s", said.text.reason, error)
            self._needless += 1

    def _send(self, serial: Hashable, said: _Happened) -> None:
        known = self._known.get(serial)
        if known is not None and known.made:
            with suppress(NotFoundError):  # expired: written anew, with the count it has reached
                self._patch(known, said)
                return
        self._create(serial, said, known)

    def _patch(self, known: _Written, said: _Happened) -> None:
        self._client.patch(
            core("namespaces", known.place.namespace, "events", known.place.name),
            {
                "count": said.times,
                "lastTimestamp": write_moment(said.last),
                "message": said.text.message,
            },
            PatchType.MERGE,
            timeout_seconds=self._seconds,
        )

    def _create(self, serial: Hashable, said: _Happened, known: _Written | None) -> None:
        """Make an Event, by the name of the last attempt, of which the answer may be lost."""
        first = said.first if known is None else known.first
        if known is None or known.made:
            place = place_of(said.about, self._reporter.component, uuid4().hex[:16])
            known = _Written(place, first, made=False)
            self._remember(serial, known)
        times = EventTimes(write_moment(first), write_moment(said.last), said.times)
        event = make_event(said.about, said.text, self._reporter, known.place, times)
        with suppress(ConflictError):
            path = core("namespaces", known.place.namespace, "events")
            self._client.post(path, event, timeout_seconds=self._seconds)
        self._remember(serial, known._replace(made=True))

    def _remember(self, serial: Hashable, written: _Written) -> None:
        self._known[serial] = written
        self._known.move_to_end(serial)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)

    @property
    def _seconds(self) -> float:
        """Return how long a request may take; at the end no longer than is waited for that."""
        return max(min(self._request_seconds, self._background.left_seconds), 0.1)


def _is_terminating(error: ReplyError) -> bool:
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)
