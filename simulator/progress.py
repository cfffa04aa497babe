"""
Tell a waiting person what is going on.

Whoever does slow work names its steps here; where the words go is decided by the caller. On a
terminal a step is one line whose seconds tick; elsewhere (a log, a pipe) it is a line at the
start, one every so often, and one at the end, so that a log neither floods nor looks dead.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

TICK_SECONDS = 1.0
LINE_SECONDS = 30.0


class Progress:
    """Takes note of steps that may be slow, on a stream; without one nobody watches."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        every_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._in_place = stream is not None and stream.isatty()
        self._every_seconds = every_seconds or (TICK_SECONDS if self._in_place else LINE_SECONDS)
        self._clock = clock

    def say(self, text: str) -> None:
        """Note a fact that took no time."""
        self._write(f"{text}\n")

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Cover one step: entered when it begins, left when it ends."""
        if self._stream is None:
            yield
            return
        begin = self._clock()
        self._show(text, " 0 s" if self._in_place else "")
        ending = "failed"
        try:
            with _ticking(
                self._every_seconds, lambda: self._show(text, f" {self._clock() - begin:.0f} s")
            ):
                yield
            ending = "done"
        finally:
            self._show(text, f" {self._clock() - begin:.1f} s, {ending}", end="\n")

    def _show(self, text: str, seconds: str, end: str = "") -> None:
        if self._in_place:
            self._write(f"\r\x1b[K{text} ...{seconds}{end}")
        else:
            self._write(f"{text} ...{seconds}\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def _ticking(every_seconds: float, tick: Callable[[], None]) -> Iterator[None]:
    """Call `tick` regularly for as long as the block runs, and never after it."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(every_seconds):
            tick()

    thread = threading.Thread(target=run, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
