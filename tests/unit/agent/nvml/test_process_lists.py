"""
Asking a library for process lists.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from agent.model.sample import GpuProcess
from agent.nvml.faults import Code
from agent.nvml.process_lists import ProcessLists
from agent.nvml.protocol import NvmlFailure
from gpufence.quantity import MIB

V3 = "nvmlDeviceGetComputeRunningProcesses_v3"
DEVICE = object()


class Library:
    """
    A library with one function, which answers the next code of its script, then success.
    """

    def __init__(self, name: str = V3, *codes: int, count: int = 1, garbage: int = 0) -> None:
        self.calls: list[int] = []
        self._codes = list(codes)
        self._count = count
        self._garbage = garbage
        setattr(self, name, self._answer)

    def _answer(self, device: object, count: Any, buffer: Any) -> int:
        assert device is DEVICE
        room = count._obj
        self.calls.append(room.value)
        code = self._codes.pop(0) if self._codes else 0
        if code == 0 and room.value < self._count:
            code = Code.INSUFFICIENT_SIZE
        room.value = self._count
        if code == 0:
            pid = 0 if self._garbage > 0 else 1000
            self._garbage -= 1
            whole = b"".join(
                struct.pack("=I4xQII", pid and pid + i, MIB, 0, 0) for i in range(self._count)
            )
            ctypes.memmove(buffer, whole, len(whole))
        return code


def read(library: Library) -> tuple[GpuProcess, ...] | NvmlFailure:
    lists = ProcessLists(library)  # type: ignore[arg-type]  # stands in for a CDLL
    return lists.read(DEVICE, "Compute")


def test_one_call_is_enough() -> None:
    """
    A short list needs no probing for its length.
    """
    library = Library()

    assert (GpuProcess(1000, MIB),) == read(library)
    assert [64] == library.calls


def test_an_older_version_is_found() -> None:
    """
    Without the newest function the one before it is asked.
    """
    assert (GpuProcess(1000, MIB),) == read(Library(V3.replace("_v3", "_v2")))
    assert (GpuProcess(1000, MIB),) == read(Library(V3.replace("_v3", "")))


def test_no_version_at_all_is_a_missing_function() -> None:
    """
    A library that has no such function says so as NVML would.
    """
    expected = NvmlFailure(Code.FUNCTION_NOT_FOUND, V3.removesuffix("_v3"))

    assert expected == read(Library("nvmlInit"))


def test_more_room_is_made() -> None:
    """
    A long list is asked for again with twice the room it needs.
    """
    library = Library(count=100)

    assert 100 == len(read(library))
    assert [64, 200] == library.calls


def test_room_that_was_made_stays() -> None:
    """
    The next list of the same length takes one call.
    """
    library = Library(count=100)
    lists = ProcessLists(library)  # type: ignore[arg-type]  # stands in for a CDLL
    lists.read(DEVICE, "Compute")
    lists.read(DEVICE, "Compute")

    assert [64, 200, 200] == library.calls


def test_a_storm_ends_somewhere() -> None:
    """
    After a few attempts the list is given up, and the room it may take is bounded.
    """
    library = Library(V3, *[Code.INSUFFICIENT_SIZE] * 99, count=2**31)

    assert NvmlFailure(Code.INSUFFICIENT_SIZE, V3) == read(library)
    assert [64, 65536, 65536, 65536] == library.calls


def test_other_codes_end_it_at_once() -> None:
    """
    A code that will not change is not asked for again.
    """
    library = Library(V3, Code.NOT_SUPPORTED)

    assert NvmlFailure(Code.NOT_SUPPORTED, V3) == read(library)
    assert 1 == len(library.calls)


def test_an_odd_answer_is_asked_for_again() -> None:
    """
    A list caught in the middle of a change is read at the second attempt.
    """
    assert (GpuProcess(1000, MIB),) == read(Library(garbage=1))


def test_a_layout_that_nobody_knows_is_a_failure() -> None:
    """
    Entries that never make sense are unknown, not nobody.
    """
    failure = read(Library(garbage=99))

    assert NvmlFailure(None, V3, "entries of no known layout") == failure
