"""
The processes a workload starts: real ones, which never outlive it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PATIENCE_SECONDS = 2.0
STEP_SECONDS = 0.01


class Workers:
    """
    The workers of this process.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._pids: list[int] = []

    def fork(self, count: int) -> bool:
        """
        Start workers; returns True in each of them and False in the process that started them.
        """
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
        """
        Note which workers have ended, and how.
        """
        for pid in list(self._pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._pids.remove(pid)
                self._say(f"worker {pid} ended with {os.waitstatus_to_exitcode(status)}")

    def stop(self) -> None:
        """
        End the workers that still run, gently first.
        """
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self._pids:
                os.kill(pid, number)
            end = time.monotonic() + PATIENCE_SECONDS
            while self._pids and time.monotonic() < end:
                self.reap()
                time.sleep(STEP_SECONDS)


def _die_with(parent: int) -> None:
    """
    Let the kernel kill this process with its parent, also if the parent is gone already.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
