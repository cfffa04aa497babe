"""
The process lists of a card, asked without pynvml's wrappers, which believe every width and never
try again.

Drivers of all ages have written entries of several widths under the same names: 24 bytes, but 32 in
drivers 535.43 to 535.86 and 16 in the oldest and the oddest. The buffer is handed out filled with a
sentinel, so that the bytes a driver wrote tell its width; where they do not, the width counts under
which every entry makes sense. If none does, the list is unknown, since a wrong width turns memory
into PIDs.
"""

from __future__ import annotations

import ctypes
import struct
from itertools import chain
from typing import TYPE_CHECKING, Final

from agent.model.sample import GpuProcess
from agent.nvml.faults import Code
from agent.nvml.protocol import NvmlFailure

if TYPE_CHECKING:
    from collections.abc import Callable

WIDEST: Final = 32
SENTINELS: Final = (0xA5, 0x5A)
"""No layout ends in such a byte: what stands last is the high byte of an amount or of an id."""

_VERSIONS: Final = ("_v3", "_v2", "")
_ATTEMPTS: Final = 4
_FIRST_CAPACITY: Final = 64
_MOST_ENTRIES: Final = 2**16
_SUCCESS: Final = 0

_LAYOUTS: Final = {
    24: struct.Struct("=I4xQII"),
    32: struct.Struct("=I4xQII8x"),
    16: struct.Struct("=I4xQ"),
}
_UNKNOWN: Final = 2**64 - 1
_NO_INSTANCE: Final = 2**32 - 1
_MOST_PID: Final = 2**22
_MOST_BYTES: Final = 2**48
_MOST_INSTANCE: Final = 2**16


class ProcessLists:
    """
    The lists of one loaded library.

    One call suffices as a rule: the buffer has room for more than were there the last time. A
    driver that wants more room is asked again with twice of it, a few times.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._functions: dict[str, tuple[str, Callable[..., int]] | None] = {}
        self._capacity = _FIRST_CAPACITY

    def read(self, device: object, kind: str) -> tuple[GpuProcess, ...] | NvmlFailure:
        """Return a list of the kind Compute, Graphics or MPSCompute."""
        known = self._function(kind)
        if known is None:
            return NvmlFailure(Code.FUNCTION_NOT_FOUND, f"nvmlDeviceGet{kind}RunningProcesses")
        name, function = known
        failure = NvmlFailure(None, name, "entries of no known layout")
        for attempt in range(_ATTEMPTS):
            sentinel = SENTINELS[attempt % len(SENTINELS)]
            buffer = ctypes.create_string_buffer(
                bytes([sentinel]) * (self._capacity * WIDEST), self._capacity * WIDEST
            )
            count = ctypes.c_uint(self._capacity)
            code = function(device, ctypes.byref(count), buffer)
            if code == _SUCCESS:
                processes = read_entries(buffer.raw, count.value, sentinel)
                if processes is not None:
                    return processes
                failure = NvmlFailure(None, name, "entries of no known layout")
            else:
                failure = NvmlFailure(code, name)
                if code != Code.INSUFFICIENT_SIZE:
                    break
                self._grow(count.value)
        return failure

    def _grow(self, wanted: int) -> None:
        self._capacity = min(max(2 * wanted, 2 * self._capacity), _MOST_ENTRIES)

    def _function(self, kind: str) -> tuple[str, Callable[..., int]] | None:
        """
        Find the newest version of a function; driver 535.98 lacks the third, those of old both.
        """
        if kind not in self._functions:
            names = [f"nvmlDeviceGet{kind}RunningProcesses{version}" for version in _VERSIONS]
            functions = [(name, getattr(self._library, name, None)) for name in names]
            self._functions[kind] = next(((n, f) for n, f in functions if f is not None), None)
        return self._functions[kind]


def read_entries(raw: bytes, count: int, sentinel: int) -> tuple[GpuProcess, ...] | None:
    """Read a buffer that the driver says holds so many entries; None if no layout fits."""
    if not count:
        return ()
    written = len(raw.rstrip(bytes([sentinel])))
    widths = [width for width in _LAYOUTS if width * count == written]
    for width in widths or _LAYOUTS:
        processes = _read(raw, count, width)
        if processes is not None:
            return processes
    return None


def _read(raw: bytes, count: int, width: int) -> tuple[GpuProcess, ...] | None:
    if count * width > len(raw):
        return None
    entries = _LAYOUTS[width].iter_unpack(raw[: count * width])
    pids, amounts, *instances = zip(*entries, strict=True)
    used = [None if amount == _UNKNOWN else amount for amount in amounts]
    plausible = (
        min(pids) >= 1
        and max(pids) <= _MOST_PID
        and all(amount is None or amount < _MOST_BYTES for amount in used)
        and all(one == _NO_INSTANCE or one < _MOST_INSTANCE for one in set(chain(*instances)))
    )
    return tuple(map(GpuProcess, pids, used)) if plausible else None
