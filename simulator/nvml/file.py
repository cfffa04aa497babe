"""
The state file: made, mapped and locked.

Locks on bytes of it say how allocations exclude each other and who lives. A POSIX lock belongs to
a process: the kernel drops it with the process, however that ends, and tells every asker the
holder's PID as the asker's own PID namespace sees it. So liveness, PID reuse and namespaces need
no bookkeeping, even across containers.

The price is the well-known trap: closing *any* descriptor of the file drops all of the process's
locks on it. A process therefore opens a state file only once, see `StateFile`.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import threading
import weakref
from contextlib import contextmanager
from ctypes import sizeof
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakValueDictionary

from simulator.nvml import layout
from simulator.nvml.errors import StateFileError
from simulator.nvml.groups import own_group
from simulator.nvml.layout import ALLOCATION_LOCK, RECORD_LOCKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REMEDY = "make one with: python -m simulator nvml create"
MODE = 0o666
"""As the driver's device files: whoever may use the card may say so."""
_FLOCK = struct.Struct("@hhlli0l")
_START_TIME_FIELD = 22


@dataclass(frozen=True)
class ProcessIdentity:
    """
    Who a process is: its PID, the namespace that PID counts in, and when it started.

    `group` is the folder of the control group that it counts to.
    """

    pid: int
    name_space: int
    started: int
    group: str = field(default="", compare=False)

    @classmethod
    def own(cls) -> ProcessIdentity:
        return cls(os.getpid(), own_namespace(), _own_start(), own_group())


def own_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


class Locks:
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
        """Become the holder of a record; False if another process is."""
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


class StateFile:
    """
    An open, mapped state file, which stays open as long as anybody refers to it.

    A process has at most one per file, whoever asks for it: with a second one, closed, the kernel
    would drop the locks of the first, see `Locks`.
    """

    _open: ClassVar[WeakValueDictionary[tuple[int, int], StateFile]] = WeakValueDictionary()

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        weakref.finalize(self, os.close, descriptor)
        status = os.fstat(descriptor)
        self._open[status.st_dev, status.st_ino] = self
        self.layout = layout.StateLayout.from_buffer(
            mmap.mmap(descriptor, sizeof(layout.StateLayout))
        )
        self.locks = Locks(descriptor)

    @classmethod
    def create(cls, path: Path, fill: Callable[[layout.StateLayout], None]) -> StateFile:
        """Put a new state in place of whatever the path named; nobody sees it half-made."""
        aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            raise StateFileError(
                f"{path}: cannot be made there ({error.strerror}); name a folder you may write to"
            ) from error
        os.ftruncate(descriptor, sizeof(layout.StateLayout))
        made = cls(path, descriptor)
        made.layout.version = layout.VERSION
        made.layout.size = sizeof(layout.StateLayout)
        made.layout.magic = layout.MAGIC
        try:
            fill(made.layout)
            aside.chmod(MODE)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        return made

    @classmethod
    def open(cls, path: Path) -> StateFile:
        """Map a state that somebody made, or return it if this process has it open already."""
        try:
            status = path.stat()
            existing = cls._open.get((status.st_dev, status.st_ino))
            if existing is not None:
                return existing
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise StateFileError(f"{path}: {error.strerror}; {REMEDY}") from error
        if status.st_size != sizeof(layout.StateLayout):
            os.close(descriptor)
            raise StateFileError(f"{path}: is no state file of this version; {REMEDY}")
        opened = cls(path, descriptor)
        if opened.layout.magic != layout.MAGIC or opened.layout.version != layout.VERSION:
            raise StateFileError(f"{path}: is no state file of this version; {REMEDY}")
        return opened


def _own_start() -> int:
    text = Path("/proc/self/stat").read_text()
    behind_name = text.rpartition(")")[2].split()
    return int(behind_name[_START_TIME_FIELD - 3])
