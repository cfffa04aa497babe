"""
Waiting that a signal can end: a workload takes its signals here and nowhere else.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Protocol

from simulator.workload.errors import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable

STOPPING = frozenset({signal.SIGTERM, signal.SIGINT})


class Pauses(Protocol):
    """
    Lets time pass.
    """

    def pause(self, seconds: float | None) -> None:
        """
        Wait so long or, with None, for ever; raises StoppedError when the process shall end.
        """
        ...

    def now(self) -> float: ...


class SignalPauses:
    """
    Real time, with the signals blocked at all other moments, so that none is lost or half-handled.
    """

    def __init__(self, *, deaf_to_term: bool, child_ended: Callable[[], None]) -> None:
        self._deaf_to_term = deaf_to_term
        self._child_ended = child_ended
        self._awaited = STOPPING | {signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, self._awaited)

    def now(self) -> float:
        return time.monotonic()

    def pause(self, seconds: float | None) -> None:
        end = None if seconds is None else self.now() + seconds
        while (number := self._wait_until(end)) is not None:
            if number == signal.SIGCHLD:
                self._child_ended()
            elif number != signal.SIGTERM or not self._deaf_to_term:
                raise StoppedError(number)

    def _wait_until(self, end: float | None) -> int | None:
        if end is None:
            return signal.sigwaitinfo(self._awaited).si_signo
        left = max(0.0, end - self.now())
        info = signal.sigtimedwait(self._awaited, left)
        return None if info is None else info.si_signo
