"""
A workload's script, followed with a real framework's allocator.

`python -m simulator workload --wheels ...` becomes this program, in the framework's own Python.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, NoReturn, Self

from gpufence.quantity import MIB
from simulator.wheels.catalog import find_wheels
from simulator.workload.__main__ import StepLog, follow, parser
from simulator.workload.errors import NoCardError, OutOfMemoryError
from simulator.workload.real.allocators import (
    ALLOCATORS,
    PIECE,
    Allocator,
    NoGpuError,
    RefusedError,
    Torch,
)

if TYPE_CHECKING:
    import argparse

MOST_PROCESSES = 1024


class ProcessEntry(ctypes.Structure):
    """One entry of NVML's process list."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class RealMemory:
    """What a framework holds of its first card, in pieces."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._pieces: list[tuple[int, object]] = []

    @property
    def in_use(self) -> int:
        return sum(size for size, _ in self._pieces)

    @property
    def shown(self) -> int:
        return shown_by_nvml()

    def resize(self, size: int) -> None:
        """
        Use so much from now on; raises OutOfMemoryError and keeps what there is if it cannot be.
        """
        shrunk = False
        while self.in_use > size:
            self._pieces.pop()
            shrunk = True
        if shrunk:
            self._allocator.tidy()
        while (missing := size - self.in_use) > 0:
            piece = min(PIECE, missing)
            try:
                self._pieces.append((piece, self._allocator.take(piece)))
            except RefusedError as refused:
                held = f"(refused at {self.in_use // MIB} MiB)"
                raise OutOfMemoryError(f"{refused} {held}") from refused

    def need(self, size: int) -> None:
        while self.in_use > size:
            self._pieces.pop()

    def look(self) -> None:
        """Do nothing: the start-up hook has a thread of its own."""

    def resize_managed(self, _: int) -> NoReturn:
        raise AssertionError("refused before the start")

    def work(self, _: int) -> NoReturn:
        raise AssertionError("refused before the start")

    def reopened(self) -> Self:
        raise AssertionError("refused before the start")

    def release(self) -> None:
        """Do nothing: a process that ends needs not free."""


def shown_by_nvml() -> int:
    """Return what NVML shows of this process on all cards."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    cards, total = ctypes.c_uint(), 0
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(cards))
    for index in range(cards.value):
        handle, count = ctypes.c_void_p(), ctypes.c_uint(MOST_PROCESSES)
        entries = (ProcessEntry * MOST_PROCESSES)()
        nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
        nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), entries)
        total += sum(one.memory for one in entries[: count.value] if one.pid == os.getpid())
    return total


def opened(arguments: argparse.Namespace, log: StepLog) -> list[RealMemory]:
    """Start the framework, as a program's first use of the card does."""
    wheels = find_wheels(arguments.wheels)
    try:
        allocator = ALLOCATORS[wheels.framework](0)
    except NoGpuError as error:
        raise NoCardError(f"RuntimeError: {error}") from error
    if isinstance(allocator, Torch) and arguments.uncap:
        allocator.uncap()
    log.say(f"{wheels.framework} {allocator.version}, the real one, on a simulated card")
    return [RealMemory(allocator)]


if __name__ == "__main__":
    given = parser().parse_args(sys.argv[1:])
    sys.exit(follow(given, lambda log: opened(given, log)))
