"""
The most that each process on a card has ever held, where the driver accounts: the child's half.

Root turns that on (`nvidia-smi --accounting-mode=1`); it is never needed. The driver knows what was
held between two looks, and for a while of processes that have ended. Asked for are those of the
newest list and of the one before it: who is missing from the newest has just ended.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

import pynvml

from agent.model.sample import GpuProcess
from agent.nvml.calls import CallError, call
from agent.nvml.faults import Code
from agent.nvml.protocol import Accounted, NvmlFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SUCCESS: Final = 0
_ON: Final = 1
_MOST_PIDS: Final = 4096
_MOST_CARDS: Final = 256
_NOT_AVAILABLE: Final = 2**64 - 1
_UNKNOWN: Final = frozenset({Code.NOT_FOUND, Code.NOT_SUPPORTED})
_NAME: Final = "nvmlDeviceGetAccountingStats"
_NOBODY: Final[frozenset[int]] = frozenset()


class Accounts:
    """The processes of the last two lists of each card, by its UUID."""

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
            elif code != _SUCCESS and code not in _UNKNOWN:
                raise CallError(NvmlFailure(code, _NAME))
