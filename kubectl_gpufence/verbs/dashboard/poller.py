"""One look after the other for all open pages together, on a thread of its own."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import GpufenceError
from gpufence.names import AGENT, CONTROLLER
from gpufence.text import printable
from kube import ForbiddenError, core
from kube.repeating import Repeating
from kubectl_gpufence.output import advice
from kubectl_gpufence.verbs.dashboard.history import (
    STEP_SECONDS,
    HourHistory,
    shares_of_cards,
    shares_of_pods,
)
from kubectl_gpufence.verbs.dashboard.model import page_model, read_page_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_gpufence.cluster_view import ClusterAnswers
    from kubectl_gpufence.live import CachedAnswer, LiveLooks
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.dashboard.model import PageEvent

_COMPACT: Final = (",", ":")
_WATCHED_SECONDS: Final = 15.0
"""Nobody has asked for so long: only the hour's line goes on."""


class EventList(NamedTuple):
    """
    What agents and controller have said in a namespace, or in all, and what may not be read of it.
    """

    events: tuple[PageEvent, ...] = ()
    note: str = ""


def read_events(reader: ClusterReader, namespace: str) -> EventList:
    """Read the Events of agents and controller."""
    path = core("namespaces", namespace, "events") if namespace else core("events")
    try:
        found = [
            event
            for source in (AGENT, CONTROLLER)
            for event in reader.listed(path, read_page_event, {"fieldSelector": f"source={source}"})
        ]
    except ForbiddenError:
        return EventList(note="you may not list events: none are shown")
    return EventList(tuple(found))


class PagePoller:
    """
    Holds what the pages show. The first look is taken by whoever makes it, so that what stands
    against it is heard at once.
    """

    def __init__(
        self,
        live: LiveLooks,
        namespace: str,
        interval: float,
        events: CachedAnswer[EventList],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live = live
        self._namespace = namespace
        self._interval = interval
        self._events = events
        self._clock = clock
        self._cards, self._pods = HourHistory(), HourHistory()
        self._lock = threading.Lock()
        self._number = 0
        self._model = b"{}"
        self._looked_at = self._asked_at = clock()
        self._trouble = ""
        self._look()
        self._repeating = Repeating("looks", self._turn, jitter=0.0)

    def start(self) -> None:
        self._repeating.start(self._pause())

    def stop(self) -> None:
        """End after the look that is being taken, and do not wait for that."""
        self._repeating.end()
        self._live.stop()

    def state(self, after: int) -> bytes:
        """Return what is new after a look, as JSON: without `model` where nothing is."""
        now = self._clock()
        with self._lock:
            self._asked_at = now
            head: dict[str, object] = {
                "look": self._number,
                "age": round(max(now - self._looked_at, 0.0), 2),
                "interval": self._interval,
                "trouble": self._trouble,
            }
            if after == self._number:
                return json.dumps(head).encode()
            # A page that knows looks of another run of this program begins anew.
            known = after if after < self._number else 0
            head["cards"] = self._cards.since(known, now)
            head["pods"] = self._pods.since(known, now)
            return (
                json.dumps(head, separators=_COMPACT).encode()[:-1]
                + b',"model":'
                + self._model
                + b"}"
            )

    def _turn(self) -> float:
        try:
            self._look()
        except GpufenceError as error:
            self._say(advice(error))
        except Exception as error:  # noqa: BLE001 - one bad look must not be the last
            self._say(f"this look has failed: {printable(repr(error), 200)}")
        return self._pause()

    def _pause(self) -> float:
        watched = self._clock() - self._asked_at < _WATCHED_SECONDS
        return self._interval if watched else max(self._interval, STEP_SECONDS)

    def _look(self) -> None:
        """Take a look; what the Events say is not worth losing it for."""
        cluster, (events, trouble) = self._live.look(), self._events.get()
        notes = (*cluster.notes, *filter(None, (events.note, trouble)))
        noted = replace(cluster, notes=notes)
        shown = page_model(noted, self._namespace, events.events)
        model = json.dumps(shown, separators=_COMPACT).encode()
        now = self._clock()
        points = self._points(cluster) if self._cards.is_due(now) else None
        with self._lock:
            self._number += 1
            if points is not None:
                self._cards.add(self._number, now, points[0])
                self._pods.add(self._number, now, points[1])
            self._model, self._looked_at, self._trouble = model, now, ""

    def _points(
        self, cluster: ClusterAnswers
    ) -> tuple[dict[str, int | None], dict[str, int | None]]:
        return shares_of_cards(cluster), shares_of_pods(cluster, self._namespace)

    def _say(self, trouble: str) -> None:
        with self._lock:
            self._trouble = trouble
