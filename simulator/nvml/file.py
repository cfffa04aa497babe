"""
Make and map the state file.
"""

from __future__ import annotations

import mmap
import os
import weakref
from ctypes import sizeof
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakValueDictionary

from simulator.nvml import layout
from simulator.nvml.errors import StateFileError
from simulator.nvml.locks import Locks, own_namespace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REMEDY = "make one with: python -m simulator nvml create"
MODE = 0o666
"""As the driver's device files: whoever may use the card may say so."""


class StateFile:
    """
    An open, mapped state file, which stays open as long as anybody refers to it.

    A process has at most one per file, whoever asks for it: with a second one, closed, the kernel
    would drop the locks of the first, see `locks`.
    """

    _open: ClassVar[WeakValueDictionary[tuple[int, int], StateFile]] = WeakValueDictionary()

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        weakref.finalize(self, os.close, descriptor)
        status = os.fstat(descriptor)
        self._open[status.st_dev, status.st_ino] = self
        self.layout = layout.Layout.from_buffer(mmap.mmap(descriptor, sizeof(layout.Layout)))
        self.locks = Locks(descriptor)

    @classmethod
    def create(cls, path: Path, fill: Callable[[layout.Layout], None]) -> StateFile:
        """
        Put a new state in place of whatever the path named; nobody sees it half-made.
        """
        aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            raise StateFileError(
                f"{path}: cannot be made there ({error.strerror}); name a folder you may write to"
            ) from error
        os.ftruncate(descriptor, sizeof(layout.Layout))
        made = cls(path, descriptor)
        made.layout.version = layout.VERSION
        made.layout.size = sizeof(layout.Layout)
        made.layout.home_namespace = own_namespace()
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
        """
        Map a state that somebody made, or return it if this process has it open already.
        """
        try:
            status = path.stat()
            known = cls._open.get((status.st_dev, status.st_ino))
            if known is not None:
                return known
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise StateFileError(f"{path}: {error.strerror}; {REMEDY}") from error
        if status.st_size != sizeof(layout.Layout):
            os.close(descriptor)
            raise StateFileError(f"{path}: is no state file of this version; {REMEDY}")
        opened = cls(path, descriptor)
        if opened.layout.magic != layout.MAGIC or opened.layout.version != layout.VERSION:
            raise StateFileError(f"{path}: is no state file of this version; {REMEDY}")
        return opened
