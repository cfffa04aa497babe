"""
A program of ours that runs for long: its settings in the log, its address taken before anything
else begins, its parts started, its pages served, and all of it ended by a signal.
"""

from __future__ import annotations

import gc
import logging
import signal
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

from gpufence.settings import shown_settings
from service.listen import listen
from service.logs import start_logging, tell_settings
from service.status_server import BACKLOG, StatusServer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from service.status_server import PageQuestion, StatusReply

_log = logging.getLogger(__name__)
_STEP_SECONDS: Final = 0.5


class Program(Protocol):
    """The parts that run together, and the pages and folders of pages that show them."""

    @property
    def pages(self) -> Mapping[str, Callable[[], StatusReply]]: ...

    @property
    def folders(self) -> Mapping[str, Callable[[PageQuestion], StatusReply]]: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class ServiceSettings(Protocol):
    """What the settings of every program have."""

    @property
    def log_level(self) -> str: ...

    @property
    def status_listen(self) -> tuple[str, int]: ...


def run(
    name: str,
    settings: ServiceSettings,
    environ: Mapping[str, str],
    build: Callable[[], Program],
    status_setting: str,
    known: Collection[str] = (),
) -> None:
    """
    Run what `build` makes until told to end; `status_setting` is where its address is set, and of
    the variables that are `known` elsewhere nothing is said.

    Raises GpufenceError, before anything is started, for an address that is taken.
    """
    start_logging(settings.log_level)
    tell_settings(name, type(settings), shown_settings(settings), environ, known)
    with ExitStack() as undo:
        listener = undo.enter_context(listen(status_setting, settings.status_listen, BACKLOG))
        program = build()
        server = StatusServer(listener, program.pages, folders=program.folders)
        # What is there now stays; looking over it again and again would only cost time.
        gc.collect()
        gc.freeze()
        with end_signals() as signals:
            program.start()
            undo.callback(program.stop)
            server.start()
            undo.callback(server.close)
            _log.info("serving", extra={"fields": {"statusListen": server.address}})
            _log.info("%s: ending", first_of(signals))
    _log.info("ended")


@contextmanager
def end_signals() -> Iterator[SimpleQueue[str]]:
    """Queue the names of SIGTERM and SIGINT as they come; a second one does what it did before."""
    # A handler runs in the middle of anything: an Event's lock may be held by the very code that it
    # interrupts, whereas this queue may be put into at any time.
    signals: SimpleQueue[str] = SimpleQueue()

    def end(number: int, _frame: object) -> None:
        signals.put(signal.Signals(number).name)
        signal.signal(number, before[signal.Signals(number)])

    ways = (signal.SIGTERM, signal.SIGINT)
    before = {way: signal.signal(way, end) for way in ways}
    try:
        yield signals
    finally:
        for way, handler in before.items():
            signal.signal(way, handler)


def first_of(signals: SimpleQueue[str]) -> str:
    """Wait, in steps: a signal that another thread was given does not wake an endless wait."""
    while True:
        with suppress(Empty):
            return signals.get(timeout=_STEP_SECONDS)
