"""
PURE. The entries of a process list, as drivers of all ages have written them under the same names.

Entries are 24 bytes wide, but 32 in drivers 535.43 to 535.86 and 16 in the oldest and the oddest.
The buffer is handed out filled with a sentinel, so that the bytes a driver wrote tell its width;
where they do not, the width counts under which every entry makes sense. If none does, the list is
unknown, since a wrong width turns memory into PIDs.
"""

from __future__ import annotations

import struct
from typing import Final

from agent.model.sample import GpuProcess

WIDEST: Final = 32
SENTINELS: Final = (0xA5, 0x5A)
"""
No layout ends in such a byte: what stands last is the high byte of an amount or of an id.
"""

_LAYOUTS: Final = {
    24: struct.Struct("=I4xQII"),
    32: struct.Struct("=I4xQII8x"),
    16: struct.Struct("=I4xQ"),
}
_UNKNOWN: Final = 2**64 - 1
_NO_INSTANCE: Final = 2**32 - 1
_NO_INSTANCES: Final = [_NO_INSTANCE, _NO_INSTANCE]
_MOST_PID: Final = 2**22
_MOST_BYTES: Final = 2**48
_MOST_INSTANCE: Final = 2**16


def read_entries(raw: bytes, count: int, sentinel: int) -> tuple[GpuProcess, ...] | None:
    """
    Read a buffer that the driver says holds so many entries; None if no layout fits.
    """
    if not count:
        return ()
    written = len(raw.rstrip(bytes([sentinel])))
    widths = [width for width in _LAYOUTS if width * count == written]
    for width in widths or _LAYOUTS:
        found = _read(raw, count, width)
        if found is not None:
            return found
    return None


def _read(raw: bytes, count: int, width: int) -> tuple[GpuProcess, ...] | None:
    if count * width > len(raw):
        return None
    found: list[GpuProcess] = []
    for pid, used, *instances in _LAYOUTS[width].iter_unpack(raw[: count * width]):
        plausible = 1 <= pid <= _MOST_PID and (used == _UNKNOWN or used < _MOST_BYTES)
        if not plausible or not _instances_fit(instances):
            return None
        found.append(GpuProcess(pid, None if used == _UNKNOWN else used))
    return tuple(found)


def _instances_fit(ids: list[int]) -> bool:
    return ids == _NO_INSTANCES or all(one == _NO_INSTANCE or one < _MOST_INSTANCE for one in ids)
