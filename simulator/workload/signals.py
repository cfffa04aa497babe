"""
Waiting that a signal can end, and the workers that a workload starts: real processes, which never
outlive it.

A workload takes its signals here and nowhere else.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Protocol

from simulator.workload.errors import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable

STOPPING = frozenset({signal.SIGTERM, signal.SIGINT})
PR_SET_PDEATHSIG = 1
PATIENCE_SECONDS = 2.0
STEP_SECONDS = 0.01


class WorkloadClock(Protocol):
    def pause(self, seconds: float | None) -> None:
        """Wait so long or, with None, for ever; raises StoppedError when the process shall end."""
        ...

    def now(self) -> float: ...


class SignalClock:
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


class Workers:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._pids: list[int] = []

    def fork(self, count: int) -> bool:
        parent = os.getpid()
        for _ in range(count):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                self._pids.clear()
                _die_with(parent)
                return True
            self._pids.append(pid)
        return False

    def reap(self) -> None:
        for pid in list(self._pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._pids.remove(pid)
                self._say(f"worker {pid} ended with {os.waitstatus_to_exitcode(status)}")

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self._pids:
                os.kill(pid, number)
            end = time.monotonic() + PATIENCE_SECONDS
            while self._pids and time.monotonic() < end:
                self.reap()
                time.sleep(STEP_SECONDS)


def _die_with(parent: int) -> None:
    """Let the kernel kill this process with its parent, also if the parent is gone already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
