"""
Make and map the state file.
"""

from __future__ import annotations

import mmap
import os
import weakref
from ctypes import sizeof
from typing import TYPE_CHECKING, Self

from simulator.nvml import layout
from simulator.nvml.errors import StateFileError
from simulator.nvml.locks import Locks, own_namespace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODE = 0o666
"""As the driver's device files: whoever may use the card may say so."""


class StateFile:
    """
    An open, mapped state file. It stays open as long as anybody refers to it, see `locks`.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        weakref.finalize(self, os.close, descriptor)
        self.layout = layout.Layout.from_buffer(mmap.mmap(descriptor, sizeof(layout.Layout)))
        self.locks = Locks(descriptor)

    @classmethod
    def create(cls, path: Path, fill: Callable[[layout.Layout], None]) -> Self:
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
        fill(made.layout)
        aside.chmod(MODE)
        aside.replace(path)
        return made

    @classmethod
    def open(cls, path: Path) -> Self:
        """
        Map a state that somebody made.
        """
        remedy = "make one with: python -m simulator nvml create"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise StateFileError(f"{path}: {error.strerror}; {remedy}") from error
        size = os.fstat(descriptor).st_size
        if size != sizeof(layout.Layout):
            os.close(descriptor)
            raise StateFileError(f"{path}: is no state file of this version; {remedy}")
        opened = cls(path, descriptor)
        if opened.layout.magic != layout.MAGIC or opened.layout.version != layout.VERSION:
            raise StateFileError(f"{path}: is no state file of this version; {remedy}")
        return opened
