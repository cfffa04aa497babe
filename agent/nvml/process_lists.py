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

import pynvml

from agent.model.sample import GpuProcess
from agent.nvml.faults import Code
from agent.nvml.nvml_calls import CallError, call
from agent.nvml.protocol import Accounted, NvmlFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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


_ON: Final = 1
_MOST_PIDS: Final = 4096
_MOST_CARDS: Final = 256
_NOT_AVAILABLE: Final = 2**64 - 1
_NOT_ACCOUNTED: Final = frozenset({Code.NOT_FOUND, Code.NOT_SUPPORTED})
_NAME: Final = "nvmlDeviceGetAccountingStats"
_NOBODY: Final[frozenset[int]] = frozenset()


class Accounts:
    """
    The most that each process on a card has ever held, where the driver accounts, which root turns
    on (`nvidia-smi --accounting-mode=1`) and which is never needed. It knows what was held between
    two looks, and for a while of processes that have ended: those of the last two lists are asked
    for, since one that is missing from the newest has just ended.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._function = getattr(library, _NAME, None)
        self._lists: dict[str, tuple[frozenset[int], frozenset[int]]] = {}

    def listed(self, uuid: str, pids: Iterable[int]) -> None:
        if len(self._lists) > _MOST_CARDS:
            self._lists.clear()
        newest, _ = self._lists.get(uuid, (_NOBODY, _NOBODY))
        self._lists[uuid] = frozenset(pids), newest

    def read(self, uuid: str) -> Accounted:
        """
        Return what is known of each; nothing where the driver does not account.

        Raises:
            CallError: the driver fails in another way.
        """
        device = call(pynvml.nvmlDeviceGetHandleByUUID, uuid)
        try:
            mode = int(call(pynvml.nvmlDeviceGetAccountingMode, device))
        except CallError as error:
            if error.absent or error.failure.code == Code.NO_PERMISSION:
                return Accounted(on=False)
            raise
        if mode != _ON or self._function is None:
            return Accounted(on=False)
        newest, before = self._lists.get(uuid, (_NOBODY, _NOBODY))
        pids = sorted(newest | before)[:_MOST_PIDS]
        return Accounted(on=True, peaks=tuple(self._peaks(device, pids)))

    def _peaks(self, device: object, pids: Iterable[int]) -> Iterator[GpuProcess]:
        """Ask without pynvml's wrapper, which trips over a figure that is not available."""
        stats = pynvml.c_nvmlAccountingStats_t()
        for pid in pids:
            code = self._function(device, pid, ctypes.byref(stats))  # type: ignore[misc]  # read() has looked
            if code == _SUCCESS and stats.maxMemoryUsage not in (0, _NOT_AVAILABLE):
                yield GpuProcess(pid, int(stats.maxMemoryUsage))
            elif code != _SUCCESS and code not in _NOT_ACCOUNTED:
                raise CallError(NvmlFailure(code, _NAME))
