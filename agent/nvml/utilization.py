"""
What processes did on a card since the last time somebody asked: the child's half of measuring who
is busy.

Of a whole card the driver tells processes apart. It is asked for what is newer than the newest
sample seen; asked for everything it would answer with the average over its whole buffer, in which a
short kernel is nothing and who has stopped goes on. Of a MIG instance performance monitoring tells
how much of the time there was work, on Hopper and later.

An answer covers the time since the one before. Where there was none, or the clock by which samples
are dated was set, it covers nothing: what puts answers together sees the hole.
"""

from __future__ import annotations

import ctypes
import math
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pynvml

from agent.clock import boottime
from agent.model.sample import CardWork
from agent.nvml.faults import Code
from agent.nvml.nvml_calls import CallError, call, or_none
from agent.nvml.protocol import NvmlFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SUCCESS: Final = 0
_ATTEMPTS: Final = 4
_FIRST_CAPACITY: Final = 128
_MOST_ENTRIES: Final = 2**16
_MOST_PERCENT: Final = 100
_MOST_CARDS: Final = 256
_MICROSECONDS: Final = 1_000_000
_STEP_SECONDS: Final = 1.0
"""A clock that moved by more against the one nobody can set was set by somebody."""


class Mark(NamedTuple):
    """
    Where the next answer of a card begins: at `until`, after the sample `newest`, which is dated by
    a clock that is so far `ahead` of ours.
    """

    until: float
    newest: int
    ahead: float


class _Taken(NamedTuple):
    """A sample of performance monitoring, which is the driver's until it is freed."""

    at: float
    sample: Any


class Samples(NamedTuple):
    """
    Who had some use and what percentage of the time since, the newest date, and whether there was
    anything that cannot be.
    """

    workers: Mapping[int, int]
    newest: int
    garbled: bool


class WorkMeter:
    """The marks of one loaded library, by the UUID of the card or instance."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._function = getattr(library, "nvmlDeviceGetProcessUtilization", None)
        self._capacity = _FIRST_CAPACITY
        self._marks: dict[str, Mark] = {}
        self._taken: dict[str, _Taken] = {}

    def read(self, uuid: str) -> CardWork:
        """
        Return what was done since the last answer about this card; one that fails ends its time.

        Raises:
            CallError: the driver does not say.
        """
        if len(self._marks) + len(self._taken) > _MOST_CARDS:
            self._forget()
        mark, taken = self._marks.pop(uuid, None), self._taken.pop(uuid, None)
        try:
            device = call(pynvml.nvmlDeviceGetHandleByUUID, uuid)
            instance = or_none(pynvml.nvmlDeviceIsMigDeviceHandle, device)
            if instance is not None and instance.value:
                return self._of_instance(uuid, device, taken)
            return self._of_card(uuid, device, mark)
        finally:
            if taken is not None:
                or_none(pynvml.nvmlGpmSampleFree, taken.sample)

    def _of_card(self, uuid: str, device: object, mark: Mark | None) -> CardWork:
        now, date = boottime(), time.time_ns() // 1000
        percent = int(call(pynvml.nvmlDeviceGetUtilizationRates, device).gpu)
        mark = mark_to_go_on_from(mark, now, date)
        entries = self._entries(device, mark.newest)
        found = read_samples(entries, mark.newest, date + _MICROSECONDS)
        self._marks[uuid] = Mark(now, found.newest, date / _MICROSECONDS - now)
        garbled = found.garbled or percent > _MOST_PERCENT
        since_newest = (date - mark.newest) / _MICROSECONDS
        workers = shares(found.workers, since_newest, now - mark.until)
        return CardWork(mark.until, now, float(percent), workers, garbled)

    def _entries(self, device: object, last_seen: int) -> list[Any]:
        """
        Ask without pynvml's wrapper, which asks twice and trips over entries that come in between.
        """
        name = "nvmlDeviceGetProcessUtilization"
        if self._function is None:
            raise CallError(NvmlFailure(Code.FUNCTION_NOT_FOUND, name))
        code = int(Code.INSUFFICIENT_SIZE)
        for _ in range(_ATTEMPTS):
            buffer = (pynvml.c_nvmlProcessUtilizationSample_t * self._capacity)()
            count = ctypes.c_uint(self._capacity)
            since = ctypes.c_ulonglong(last_seen)
            code = self._function(device, buffer, ctypes.byref(count), since)
            if code == _SUCCESS:
                return list(buffer[: min(count.value, self._capacity)])
            if code == Code.NOT_FOUND:
                return []
            if code != Code.INSUFFICIENT_SIZE:
                break
            self._capacity = min(2 * max(count.value, self._capacity), _MOST_ENTRIES)
        raise CallError(NvmlFailure(code, name))

    def _of_instance(self, uuid: str, device: object, before: _Taken | None) -> CardWork:
        """Compare two samples of an instance; who did it is not told."""
        card = call(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device)
        number = call(pynvml.nvmlDeviceGetGpuInstanceId, device)
        if not call(pynvml.nvmlGpmQueryDeviceSupport, card).isSupportedDevice:
            raise CallError(NvmlFailure(Code.NOT_SUPPORTED, "nvmlGpmQueryDeviceSupport"))
        now, sample = boottime(), call(pynvml.nvmlGpmSampleAlloc)
        self._taken[uuid] = _Taken(now, sample)
        try:
            call(pynvml.nvmlGpmMigSampleGet, card, number, sample)
            percent = 0.0 if before is None else _percent(before.sample, sample)
        except CallError:
            or_none(pynvml.nvmlGpmSampleFree, self._taken.pop(uuid).sample)
            raise
        garbled = not 0 <= percent <= _MOST_PERCENT
        since = now if before is None else before.at
        return CardWork(since, now, 0.0 if garbled else percent, None, garbled)

    def _forget(self) -> None:
        for taken in self._taken.values():
            or_none(pynvml.nvmlGpmSampleFree, taken.sample)
        self._taken.clear()
        self._marks.clear()


def mark_to_go_on_from(mark: Mark | None, now: float, date: int) -> Mark:
    """
    Return the card's mark, or a new one that covers nothing yet: a clock that was set back would
    hide every new sample behind the newest one seen.
    """
    ahead = date / _MICROSECONDS - now
    if mark is None or abs(ahead - mark.ahead) > _STEP_SECONDS:
        return Mark(now, date, ahead)
    return mark


def read_samples(entries: Iterable[Any], last_seen: int, latest: int) -> Samples:
    """Read the driver's entries: those of zombies name nobody, or say what cannot be."""
    workers: dict[int, int] = {}
    newest, garbled = last_seen, False
    for entry in entries:
        most = max(entry.smUtil, entry.memUtil, entry.encUtil, entry.decUtil)
        if most > _MOST_PERCENT or not entry.pid or entry.timeStamp > latest:
            garbled = True
        elif entry.timeStamp > last_seen:
            newest = max(newest, entry.timeStamp)
            if most:
                workers[entry.pid] = max(most, workers.get(entry.pid, 0))
    return Samples(workers, newest, garbled)


def shares(workers: Mapping[int, int], averaged: float, covered: float) -> dict[int, float]:
    """
    Turn what a driver averages over the time since the newest sample into shares of the time that
    an answer covers, which is shorter: since then nobody worked until it began.
    """
    longer = max(averaged, covered) / covered if covered > 0 else 1.0
    return {pid: min(percent * longer / _MOST_PERCENT, 1.0) for pid, percent in workers.items()}


def _percent(first: object, second: object) -> float:
    wanted = pynvml.c_nvmlGpmMetricsGet_t()
    wanted.version, wanted.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, 1
    wanted.sample1, wanted.sample2 = first, second
    wanted.metrics[0].metricId = pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
    metric = call(pynvml.nvmlGpmMetricsGet, wanted).metrics[0]
    if metric.nvmlReturn != _SUCCESS:
        raise CallError(NvmlFailure(metric.nvmlReturn, "nvmlGpmMetricsGet"))
    return float(metric.value) if math.isfinite(metric.value) else -1.0
