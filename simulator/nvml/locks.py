"""
Locks on bytes of the state file: how allocations exclude each other and how the living are known.

A POSIX lock belongs to a process. The kernel drops it with the process, however that ends, and
tells every asker the holder's PID as the asker's own PID namespace sees it. So liveness, PID reuse
and namespaces need no bookkeeping, even across containers.

The price is the well-known trap: closing *any* descriptor of the file drops all of the process's
locks on it. A process therefore opens a state file only once, see `file`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.nvml.layout import ALLOCATION_LOCK, RECORD_LOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLOCK = struct.Struct("@hhlli0l")
_START_TIME_FIELD = 22


@dataclass(frozen=True)
class Identity:
    """
    Who a process is: its PID, the namespace that PID counts in, and when it started.
    """

    pid: int
    host_pid: int
    name_space: int
    started: int

    @classmethod
    def own(cls) -> Identity:
        """
        Describe this process. A /proc of an outer namespace tells the outer PID, too.
        """
        pid = os.getpid()
        return cls(pid, _outermost_pid(pid), own_namespace(), _own_start())


def own_namespace() -> int:
    """
    Return the number of this process's PID namespace.
    """
    return Path("/proc/self/ns/pid").stat().st_ino


class Locks:
    """
    The locks of one opened state file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._threads = threading.Lock()

    @contextmanager
    def allocation(self) -> Iterator[None]:
        """
        Keep everybody else from changing what memory is taken.

        A holder that dies lets go; what it left half-written is not marked as used yet.
        """
        with self._threads:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, ALLOCATION_LOCK)
            try:
                yield
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, ALLOCATION_LOCK)

    def take(self, slot: int) -> bool:
        """
        Become the holder of a record; False if another process is.
        """
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, RECORD_LOCKS + slot)
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EAGAIN}:
                return False
            raise
        return True

    def drop(self, slot: int) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, RECORD_LOCKS + slot)

    def holder(self, slot: int) -> int | None:
        """
        Return the PID of another process that holds a record: 0 if invisible here, None if nobody.
        """
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, RECORD_LOCKS + slot, 1, 0)
        answer = fcntl.fcntl(self._descriptor, fcntl.F_GETLK, question)
        kind, _, _, _, pid = _FLOCK.unpack(answer)
        return None if kind == fcntl.F_UNLCK else int(pid)


def _outermost_pid(pid: int) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[1])
    return pid


def _own_start() -> int:
    text = Path("/proc/self/stat").read_text()
    behind_name = text.rpartition(")")[2].split()
    return int(behind_name[_START_TIME_FIELD - 3])
