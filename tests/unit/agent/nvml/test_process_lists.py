"""
Asking a library for process lists, and reading the buffers that drivers of all ages have filled.
"""

import ctypes
import struct
from typing import Any

import pytest

from agent.model.sample import GpuProcess
from agent.nvml.faults import Code
from agent.nvml.process_lists import SENTINELS, WIDEST, ProcessLists, read_entries
from agent.nvml.protocol import NvmlFailure
from gpufence.quantity import MIB

SENTINEL = SENTINELS[0]
CAPACITY = 64
NOBODY = 2**32 - 1
NOT_AVAILABLE = 2**64 - 1
WIDTHS = (16, 24, 32)
V3 = "nvmlDeviceGetComputeRunningProcesses_v3"
DEVICE = object()


class Library:
    """A library with one function, which answers the next code of its script, then success."""

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
    """A short list needs no probing for its length."""
    library = Library()

    assert (GpuProcess(1000, MIB),) == read(library)
    assert [64] == library.calls


def test_an_older_version_is_found() -> None:
    """Without the newest function the one before it is asked."""
    assert (GpuProcess(1000, MIB),) == read(Library(V3.replace("_v3", "_v2")))
    assert (GpuProcess(1000, MIB),) == read(Library(V3.replace("_v3", "")))


def test_no_version_at_all_is_a_missing_function() -> None:
    """A library that has no such function says so as NVML would."""
    expected = NvmlFailure(Code.FUNCTION_NOT_FOUND, V3.removesuffix("_v3"))

    assert expected == read(Library("nvmlInit"))


def test_more_room_is_made() -> None:
    """A long list is asked for again with twice the room it needs."""
    library = Library(count=100)

    assert 100 == len(read(library))
    assert [64, 200] == library.calls


def test_room_that_was_made_stays() -> None:
    """The next list of the same length takes one call."""
    library = Library(count=100)
    lists = ProcessLists(library)  # type: ignore[arg-type]  # stands in for a CDLL
    lists.read(DEVICE, "Compute")
    lists.read(DEVICE, "Compute")

    assert [64, 200, 200] == library.calls


def test_a_storm_ends_somewhere() -> None:
    """After a few attempts the list is given up, and the room it may take is bounded."""
    library = Library(V3, *[Code.INSUFFICIENT_SIZE] * 99, count=2**31)

    assert NvmlFailure(Code.INSUFFICIENT_SIZE, V3) == read(library)
    assert [64, 65536, 65536, 65536] == library.calls


def test_other_codes_end_it_at_once() -> None:
    """A code that will not change is not asked for again."""
    library = Library(V3, Code.NOT_SUPPORTED)

    assert NvmlFailure(Code.NOT_SUPPORTED, V3) == read(library)
    assert 1 == len(library.calls)


def test_an_odd_answer_is_asked_for_again() -> None:
    """A list caught in the middle of a change is read at the second attempt."""
    assert (GpuProcess(1000, MIB),) == read(Library(garbage=1))


def test_a_layout_that_nobody_knows_is_a_failure() -> None:
    """Entries that never make sense are unknown, not nobody."""
    failure = read(Library(garbage=99))

    assert NvmlFailure(None, V3, "entries of no known layout") == failure


def entry(width: int, pid: int, used: int, instance: int = NOBODY) -> bytes:
    whole = struct.pack("=IIQIIQ", pid, 0, used, instance, instance, 0)
    return whole[:width]


def buffer(*entries: bytes, fill: int = SENTINEL) -> bytes:
    return b"".join(entries).ljust(CAPACITY * WIDEST, bytes([fill]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_the_bytes_written_tell_the_width(width: int, count: int) -> None:
    """Entries of every known width are read right, however many there are."""
    expected = tuple(GpuProcess(1000 + i, (i + 1) * MIB) for i in range(count))
    raw = buffer(*(entry(width, item.pid, item.used_bytes or 0) for item in expected))

    assert expected == read_entries(raw, count, SENTINEL)


@pytest.mark.parametrize("width", WIDTHS)
def test_memory_that_is_not_available_is_none(width: int) -> None:
    """2^64-1 is neither zero nor huge."""
    raw = buffer(entry(width, 7, NOT_AVAILABLE))

    assert (GpuProcess(7, None),) == read_entries(raw, 1, SENTINEL)


def test_no_entries_are_an_empty_list() -> None:
    """A count of zero needs no layout."""
    assert () == read_entries(buffer(), 0, SENTINEL)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_wiped_buffer_is_read_by_what_makes_sense(width: int) -> None:
    """A driver that clears the whole buffer hides its width; then the entries themselves tell."""
    raw = buffer(*(entry(width, 1000 + i, 300 * MIB, 1) for i in range(3)), fill=0)
    pids = [item.pid for item in read_entries(raw, 3, SENTINEL) or ()]

    assert [1000, 1001, 1002] == pids


@pytest.mark.parametrize(
    "bad",
    [
        entry(24, 0, MIB),
        entry(24, 2**22 + 1, MIB),
        entry(24, 7, 2**48),
        entry(24, 7, MIB, instance=2**20),
    ],
    ids=["no PID", "no such PID", "no such memory", "no such instance"],
)
def test_one_implausible_entry_spoils_the_list(bad: bytes) -> None:
    """A list with an entry that cannot be is unknown as a whole."""
    assert None is read_entries(buffer(entry(24, 7, MIB), bad), 2, SENTINEL)


def test_a_count_beyond_the_buffer_is_no_list() -> None:
    """A driver that claims more than it was given room for is not believed."""
    assert None is read_entries(buffer(entry(24, 7, MIB)), 1_000_000, SENTINEL)
