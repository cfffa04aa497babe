"""
The process lists, asked without pynvml's wrappers, which believe every width and never try again.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from agent.nvml.entries import SENTINELS, WIDEST, read_entries
from agent.nvml.faults import Code
from agent.nvml.protocol import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.model.sample import GpuProcess

_VERSIONS: Final = ("_v3", "_v2", "")
_ATTEMPTS: Final = 4
_FIRST_CAPACITY: Final = 64
_MOST_ENTRIES: Final = 2**16
_SUCCESS: Final = 0


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

    def read(self, device: object, kind: str) -> tuple[GpuProcess, ...] | Failure:
        """
        Return a list of the kind Compute, Graphics or MPSCompute.
        """
        known = self._function(kind)
        if known is None:
            return Failure(Code.FUNCTION_NOT_FOUND, f"nvmlDeviceGet{kind}RunningProcesses")
        name, function = known
        failure = Failure(None, name, "entries of no known layout")
        for attempt in range(_ATTEMPTS):
            sentinel = SENTINELS[attempt % len(SENTINELS)]
            buffer = ctypes.create_string_buffer(
                bytes([sentinel]) * (self._capacity * WIDEST), self._capacity * WIDEST
            )
            count = ctypes.c_uint(self._capacity)
            code = function(device, ctypes.byref(count), buffer)
            if code == _SUCCESS:
                found = read_entries(buffer.raw, count.value, sentinel)
                if found is not None:
                    return found
                failure = Failure(None, name, "entries of no known layout")
            else:
                failure = Failure(code, name)
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
            found = [(name, getattr(self._library, name, None)) for name in names]
            self._functions[kind] = next(((n, f) for n, f in found if f is not None), None)
        return self._functions[kind]
