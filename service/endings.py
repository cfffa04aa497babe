"""Waiting until somebody ends the program."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEP_SECONDS: Final = 0.5


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
