"""
Events on their way to the API server: a short queue and one thread, so that no act waits for them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from gpufence import names
from gpufence.text import printable
from gpufence.times import write_moment
from kube import KubeError, core
from kube.events import EventText, EventTimes, Reporter, make_event, place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kube import Client
    from kube.events import Regarding

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 512
MOST_CHARACTERS: Final = 1023
"""An Event's message may hold 1,024."""
_TRIES: Final = 3
_PAUSE_SECONDS: Final = 1.0


class _Waiting(NamedTuple):
    about: Regarding
    said: EventText
    at: float


class Events:
    """Writes what is said, once each; what finds no place or no answer is dropped and counted."""

    def __init__(self, client: Client, instance: str, timeout_seconds: float) -> None:
        self._client = client
        self._reporter = Reporter(names.CONTROLLER, instance)
        self._timeout_seconds = timeout_seconds
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self.written = 0
        self.dropped = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for as long as one request may take, and end."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(self._timeout_seconds)

    def say(self, about: Regarding, reason: str, message: str, *, warning: bool) -> None:
        said = EventText(reason, printable(message, MOST_CHARACTERS), warning)
        with self._changed:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append(_Waiting(about, said, time.time()))
            else:
                self.dropped += 1
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                if not self._waiting:
                    return
                item = self._waiting.popleft()
            self._write(item)

    def _write(self, item: _Waiting) -> None:
        place = place_of(item.about, names.CONTROLLER, uuid4().hex[:16])
        at = write_moment(item.at)
        event = make_event(item.about, item.said, self._reporter, place, EventTimes(at, at))
        path = core("namespaces", place.namespace, "events")
        if _tried(lambda: self._client.post(path, event, timeout_seconds=self._timeout_seconds)):
            self.written += 1
        else:
            self.dropped += 1


def _tried(write: Callable[[], object]) -> bool:
    for last in range(_TRIES):
        try:
            write()
        except KubeError as error:
            _log.warning("an Event is not written: %s", error)
            if last < _TRIES - 1:
                time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False
