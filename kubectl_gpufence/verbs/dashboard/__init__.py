"""`dashboard`: what `top` shows, live, as a page that only this machine's user can open."""

from __future__ import annotations

import argparse
import io
import json
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
import webbrowser
from contextlib import contextmanager, suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import GpufenceError
from gpufence.names import AGENT, CONTROLLER
from gpufence.owners import topmost
from gpufence.text import printable
from kube.repeating import Repeating
from kubectl_gpufence.arguments import add_interval, add_scope
from kubectl_gpufence.live import CachedAnswer, LiveLooks, objects_in_view
from kubectl_gpufence.output import Output, advice
from kubectl_gpufence.reader import MissingError
from kubectl_gpufence.refusals import REFUSED, ours
from kubectl_gpufence.verbs import parser_of
from kubectl_gpufence.verbs.dashboard.episodes import subject_of
from kubectl_gpufence.verbs.dashboard.model import (
    STEP_SECONDS,
    HourHistory,
    page_model,
    shares_of_cards,
    shares_of_pods,
)
from kubectl_gpufence.verbs.dashboard.server import PageServer
from kubectl_gpufence.view import Display

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gpufence.snapshot import PodRow
    from kubectl_gpufence.cluster_view import ClusterAnswers
    from kubectl_gpufence.pods import SeenEvent, SeenPod
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.dashboard.access import AskedStory


EXAMPLES: Final = """\
examples:
  kubectl gpufence dashboard                  a page of the current namespace, live
  kubectl gpufence dashboard -A --no-open     of all namespaces; you open the address yourself
  kubectl gpufence dashboard --port 8765      where a tunnel leads: ssh -L 8765:127.0.0.1:8765 ...

The page is served on this machine's loopback address alone, to whoever knows the whole address with
its token, and shows what you may see. It stays until Ctrl-C.
"""

_TOKEN_BYTES = 32
_EVENT_SECONDS = 10.0
_LEAST_SECONDS = 0.5
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)
    parser.add_argument(
        "--port", type=_port, default=0, metavar="PORT", help="on 127.0.0.1 (one that is free)"
    )
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="start a browser (by default where there is a screen)",
    )
    add_interval(parser)


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Serve the page until Ctrl-C.

    Raises:
        KubeError: nothing at all may be seen.
        PortError: the port is taken.
    """
    live = LiveLooks(reader, lambda asker: objects_in_view(asker, call.namespace))
    events = CachedAnswer(lambda: read_events(live.reader, call.namespace), _EVENT_SECONDS)
    with _interruptible():
        try:
            interval = max(call.interval, _LEAST_SECONDS)
            return _serve(call, PagePoller(live, call.namespace, interval, events), output)
        except KeyboardInterrupt:
            return 0


def _serve(call: argparse.Namespace, poller: PagePoller, output: Output) -> int:
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    server = PageServer(call.port, token, poller.state, poller.tell)
    poller.start()
    server.start()
    try:
        where = f"namespace {call.namespace}" if call.namespace else "all namespaces"
        output.lines([server.address])
        output.notes([f"{where}, live, for everyone who knows this address; Ctrl-C ends it"])
        with tempfile.TemporaryDirectory(prefix="gpufence-dashboard-") as folder:
            if _is_wanted(call, os.environ, is_terminal=output.out.isatty()) and not _opened(
                server.address, Path(folder)
            ):
                output.notes(["no browser could be started: open the address yourself"])
            threading.Event().wait()
    finally:
        poller.stop()
        server.close()
    return 0


@contextmanager
def _interruptible() -> Iterator[None]:
    """Have every polite end be one as by Ctrl-C."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_wanted(call: argparse.Namespace, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """
    Return whether a browser is to be started: by default where somebody sits in front of a screen.
    """
    if call.open is not None:
        return bool(call.open)
    return is_terminal and (
        sys.platform == "darwin" or any(environ.get(name) for name in _DISPLAYS)
    )


def _opened(address: str, folder: Path) -> bool:
    """
    Start a browser. It is led by a file that only this user may read: what a program is started
    with, such as an address with its token, everybody on the machine can see.
    """
    file = folder / "open.html"
    file.touch(mode=0o600)
    text = f'<meta http-equiv="refresh" content="0; url={escape(address)}">\n'
    file.write_text(f'<!DOCTYPE html><meta name="referrer" content="no-referrer">{text}')
    with suppress(webbrowser.Error):
        return webbrowser.open(file.as_uri())
    return False


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f'"{text}" is no port; write one from 1 to 65535')


_COMPACT: Final = (",", ":")
_LEAST_COLUMNS: Final = 30
_MOST_COLUMNS: Final = 100
_WATCHED_SECONDS: Final = 15.0
"""Nobody has asked for so long: only the hour's line goes on."""


class EventList(NamedTuple):
    """
    What agents and controller have said in a namespace, or in all, refusals of pods, and what may
    not be read of it.
    """

    events: tuple[SeenEvent, ...] = ()
    note: str = ""


def read_events(reader: ClusterReader, namespace: str) -> EventList:
    """Read the Events of agents and controller, and those of refused pods."""
    chosen = (f"source={AGENT}", f"source={CONTROLLER}", f"reason={REFUSED}")
    by_agent, by_controller, failed = (reader.events(namespace, each) for each in chosen)
    if by_agent is None or by_controller is None or failed is None:
        return EventList(note="you may not list events: none are shown")
    return EventList((*by_agent, *by_controller, *ours(failed)))


def story(reader: ClusterReader, asked: AskedStory, *, gone: bool) -> str:
    """
    Return what the verb `why` says of an owner, and of a pod that is gone if anything is recorded;
    of other pods what `explain` says.

    Raises:
        GpufenceError: neither says anything.
    """
    if asked.of_owner:
        return _said("why", reader, asked)
    if gone:
        with suppress(MissingError):
            return _said("why", reader, asked)
    return _said("explain", reader, asked)


def _said(verb: str, reader: ClusterReader, asked: AskedStory) -> str:
    """Run a verb; one that has been taken away is as one that has nothing to say."""
    parser = parser_of(verb)
    if parser is None:
        raise MissingError(f"this plugin has no verb {verb}")
    call = parser.parse_args(["--namespace", asked.namespace, asked.name])
    said = io.StringIO()
    columns = max(_LEAST_COLUMNS, min(asked.columns, _MOST_COLUMNS))
    call.run(call, reader, Output(said, said, Display(columns)))
    return said.getvalue()


class PageNames(NamedTuple):
    """
    What a page shows, each with its namespace: pods that are there, pods that Events are about, and
    topmost owners as `Kind/name`.
    """

    living: frozenset[tuple[str, str]] = frozenset()
    told: frozenset[tuple[str, str]] = frozenset()
    owners: frozenset[tuple[str, str]] = frozenset()

    def have(self, asked: AskedStory) -> bool:
        known = self.owners if asked.of_owner else self.living | self.told
        return (asked.namespace, asked.name) in known


def names_of(cluster: ClusterAnswers, namespace: str, events: Iterable[SeenEvent]) -> PageNames:
    """Return the names of all that a page shows."""
    rows = (row for item in cluster.snapshots.values() for row in item.pods)
    shown: list[SeenPod | PodRow] = [
        *cluster.pods,
        *(row for row in rows if namespace in ("", row.namespace)),
    ]
    told = [*map(subject_of, events)]
    owners = {(item.namespace, topmost(item.owner)) for item in shown if item.owner}
    owners |= {(about.namespace, topmost(f"{about.kind}/{about.name}")) for about in told}
    return PageNames(
        frozenset((item.namespace, item.name) for item in shown),
        frozenset((about.namespace, about.name) for about in told),
        frozenset(owners),
    )


class PagePoller:
    """
    Holds what the pages show. The first look is taken while it is made, so that what stands
    against it is an error of the command.
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
        self._named = PageNames()
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

    def tell(self, asked: AskedStory) -> str:
        """Return what is known of a pod or an owner that the page names, and of no other."""
        with self._lock:
            named = self._named
        if not named.have(asked):
            return "this page does not show such a pod any longer\n"
        try:
            gone = (asked.namespace, asked.name) not in named.living
            return story(self._live.reader, asked, gone=gone)
        except GpufenceError as error:
            return f"{advice(error)}\n"
        except Exception as error:  # noqa: BLE001 - a bug in one story is no reason to hide it
            return f"its story cannot be told: {printable(repr(error), 200)}\n"

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
        named = names_of(cluster, self._namespace, events.events)
        now = self._clock()
        points = self._points(cluster) if self._cards.is_due(now) else None
        with self._lock:
            self._number += 1
            if points is not None:
                self._cards.add(self._number, now, points[0])
                self._pods.add(self._number, now, points[1])
            self._model, self._looked_at, self._trouble = model, now, ""
            self._named = named

    def _points(
        self, cluster: ClusterAnswers
    ) -> tuple[dict[str, int | None], dict[str, int | None]]:
        return shares_of_cards(cluster), shares_of_pods(cluster, self._namespace)

    def _say(self, trouble: str) -> None:
        with self._lock:
            self._trouble = trouble
