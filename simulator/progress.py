"""
Tell a waiting person what is going on.

Whoever does slow work names its steps here; where the words go is decided at the door. On a
terminal a step is one line whose seconds tick; elsewhere (a log, a pipe) it is a line at the
start, one every so often, and one at the end, so that a log neither floods nor looks dead.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

TICK_SECONDS = 1.0
LINE_SECONDS = 30.0


class Progress(Protocol):
    """
    Takes note of steps that may be slow.
    """

    def step(self, text: str) -> AbstractContextManager[None]:
        """
        Cover one step: entered when it begins, left when it ends.
        """
        ...

    def say(self, text: str) -> None:
        """
        Note a fact that took no time.
        """
        ...


class Silence:
    """
    Progress that nobody watches.
    """

    def step(self, text: str) -> AbstractContextManager[None]:
        del text
        return nullcontext()

    def say(self, text: str) -> None:
        del text


class LogProgress:
    """
    Progress for a log: whole lines only.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        every_seconds: float = LINE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._every_seconds = every_seconds
        self._clock = clock

    def say(self, text: str) -> None:
        self._write(f"{text}\n")

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        begin = self._clock()
        self._show(text, 0.0)
        ending = "failed"
        try:
            with ticking(self._every_seconds, lambda: self._show(text, self._clock() - begin)):
                yield
            ending = "done"
        finally:
            self._end(text, self._clock() - begin, ending)

    def _show(self, text: str, seconds: float) -> None:
        self._write(f"{text} ... {seconds:.0f} s\n" if seconds else f"{text} ...\n")

    def _end(self, text: str, seconds: float, ending: str) -> None:
        self._write(f"{text} ... {seconds:.1f} s, {ending}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class TerminalProgress(LogProgress):
    """
    Progress for a terminal: the seconds of the running step tick in place.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        every_seconds: float = TICK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(stream, every_seconds=every_seconds, clock=clock)

    def _show(self, text: str, seconds: float) -> None:
        self._write(f"\r\x1b[K{text} ... {seconds:.0f} s")

    def _end(self, text: str, seconds: float, ending: str) -> None:
        self._write(f"\r\x1b[K{text} ... {seconds:.1f} s, {ending}\n")


def progress_on(stream: TextIO) -> Progress:
    """
    Choose the form that suits where the words go.
    """
    return TerminalProgress(stream) if stream.isatty() else LogProgress(stream)


@contextmanager
def ticking(every_seconds: float, tick: Callable[[], None]) -> Iterator[None]:
    """
    Call `tick` regularly for as long as the block runs, and never after it.
    """
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
