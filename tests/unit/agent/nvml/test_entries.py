"""
Reading the buffers that drivers of all ages have filled.
"""

from __future__ import annotations

import struct

import pytest

from agent.model.sample import GpuProcess
from agent.nvml.process_lists import SENTINELS, WIDEST, read_entries
from gpufence.quantity import MIB

SENTINEL = SENTINELS[0]
CAPACITY = 64
NOBODY = 2**32 - 1
NOT_AVAILABLE = 2**64 - 1
WIDTHS = (16, 24, 32)


def entry(width: int, pid: int, used: int, instance: int = NOBODY) -> bytes:
    whole = struct.pack("=IIQIIQ", pid, 0, used, instance, instance, 0)
    return whole[:width]


def buffer(*entries: bytes, fill: int = SENTINEL) -> bytes:
    return b"".join(entries).ljust(CAPACITY * WIDEST, bytes([fill]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_the_bytes_written_tell_the_width(width: int, count: int) -> None:
    """
    Entries of every known width are read right, however many there are.
    """
    expected = tuple(GpuProcess(1000 + i, (i + 1) * MIB) for i in range(count))
    raw = buffer(*(entry(width, item.pid, item.used_bytes or 0) for item in expected))

    assert expected == read_entries(raw, count, SENTINEL)


@pytest.mark.parametrize("width", WIDTHS)
def test_memory_that_is_not_available_is_none(width: int) -> None:
    """
    2^64-1 is neither zero nor huge.
    """
    raw = buffer(entry(width, 7, NOT_AVAILABLE))

    assert (GpuProcess(7, None),) == read_entries(raw, 1, SENTINEL)


def test_no_entries_are_an_empty_list() -> None:
    """
    A count of zero needs no layout.
    """
    assert () == read_entries(buffer(), 0, SENTINEL)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_wiped_buffer_is_read_by_what_makes_sense(width: int) -> None:
    """
    A driver that clears the whole buffer hides its width; then the entries themselves tell.
    """
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
    """
    A list with an entry that cannot be is unknown as a whole.
    """
    assert None is read_entries(buffer(entry(24, 7, MIB), bad), 2, SENTINEL)


def test_a_count_beyond_the_buffer_is_no_list() -> None:
    """
    A driver that claims more than it was given room for is not believed.
    """
    assert None is read_entries(buffer(entry(24, 7, MIB)), 1_000_000, SENTINEL)
