"""
The one place that knows pynvml: asks NVML and turns its replies into answers.

No handle outlives a question: cards are found by index or UUID each time, since a handle kept over
a reset or a new MIG layout may mean something else. Nothing here raises for what NVML does.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Final, NamedTuple

import pynvml

from agent.clock import boottime
from agent.model.sample import CardMemory, CardSensors, merged
from agent.nvml.faults import Code
from agent.nvml.nvml_calls import CallError, call, or_none
from agent.nvml.process_lists import Accounts, ProcessLists
from agent.nvml.protocol import (
    UNNAMED,
    Answer,
    Ask,
    Counted,
    Limited,
    Listed,
    Looked,
    NvmlFailure,
    Opened,
    Seen,
)
from agent.nvml.utilization import WorkMeter

if TYPE_CHECKING:
    from agent.model.sample import CardWork, GpuProcess
    from agent.nvml.protocol import Accounted, Question

_MIG_NAME: Final = " MIG "
_MIG_ON: Final = 1
_MOST_CARDS: Final = 1024
_MOST_CELSIUS: Final = 200
_MOST_WATTS: Final = 10_000


class CardKind(NamedTuple):
    model: str
    capability: tuple[int, int] | None


class Driver:
    """NVML, loaded by the first question and kept for the life of the process."""

    def __init__(self, library: str | None = None) -> None:
        self._library = library
        self._lists: ProcessLists | None = None
        self._meter: WorkMeter | None = None
        self._accounts: Accounts | None = None
        self._kinds: dict[str, CardKind] = {}
        self._reserved: dict[str, int | None] = {}

    def answer(self, question: Question) -> Answer:
        """Answer a question; whatever fails is the answer."""
        try:
            return self._answer(question)
        except CallError as error:
            return error.failure

    def close(self) -> None:
        """Shut NVML down, as a good client does."""
        if self._lists is not None:
            or_none(pynvml.nvmlShutdown)

    def _answer(self, question: Question) -> Answer:
        match question.ask:
            case Ask.OPEN:
                return self._open()
            case Ask.COUNT:
                return Counted(int(call(pynvml.nvmlDeviceGetCount)))
            case Ask.LOOK:
                return self._look(int(question.subject))
            case Ask.LIST:
                return self._list(question.subject)
            case Ask.WORK:
                return self._work(question.subject)
            case Ask.SENSE:
                return _sensed(question.subject)
            case Ask.PEAKS:
                return self._peaks(question.subject)
            case Ask.LIMITS:
                return _limited(question.subject, question.path)

    def _open(self) -> Opened:
        """
        Load and initialise the library; one that is given is loaded first, and pynvml, which asks
        the linker for the same name, gets that one.
        """
        if self._library is not None:
            try:
                ctypes.CDLL(self._library)
            except OSError as error:
                failure = NvmlFailure(Code.LIBRARY_NOT_FOUND, str(error))
                raise CallError(failure) from error
        call(pynvml.nvmlInit)
        self._lists = ProcessLists(pynvml.nvmlLib)
        self._meter = WorkMeter(pynvml.nvmlLib)
        self._accounts = Accounts(pynvml.nvmlLib)
        return Opened(str(or_none(pynvml.nvmlSystemGetDriverVersion) or UNNAMED))

    def _list(self, uuid: str) -> Listed:
        if self._lists is None:
            raise CallError(NvmlFailure(Code.UNINITIALIZED, "list"))
        at = boottime()
        device = call(pynvml.nvmlDeviceGetHandleByUUID, uuid)
        compute = self._lists.read(device, "Compute")
        if isinstance(compute, NvmlFailure):
            raise CallError(compute)
        graphics = _optional(self._lists.read(device, "Graphics"))
        mps = _optional(self._lists.read(device, "MPSCompute"))
        processes = merged(compute, graphics, mps)
        if self._accounts is not None:
            self._accounts.listed(uuid, (item.pid for item in processes))
        return Listed(at, processes, frozenset(item.pid for item in mps))

    def _work(self, uuid: str) -> CardWork:
        if self._meter is None:
            raise CallError(NvmlFailure(Code.UNINITIALIZED, "work"))
        return self._meter.read(uuid)

    def _peaks(self, uuid: str) -> Accounted:
        if self._accounts is None:
            raise CallError(NvmlFailure(Code.UNINITIALIZED, "peaks"))
        return self._accounts.read(uuid)

    def _look(self, index: int) -> Looked:
        device = call(pynvml.nvmlDeviceGetHandleByIndex, index)
        uuid = str(call(pynvml.nvmlDeviceGetUUID, device))
        kind = self._kind(device, uuid)
        if not _is_cut(device):
            return Looked(Seen(uuid, kind.model, kind.capability, self._memory(device, uuid)))
        memory = NvmlFailure(None, "memory", "the instances tell")
        card = Seen(uuid, kind.model, kind.capability, memory)
        instances: list[Seen] = []
        gaps: list[NvmlFailure] = []
        for place in range(int(call(pynvml.nvmlDeviceGetMaxMigDeviceCount, device))):
            try:
                instances.extend(self._instance(device, place, card))
            except CallError as error:
                gaps.append(error.failure)
        return Looked(card, tuple(instances), tuple(gaps))

    def _instance(self, parent: object, place: int, card: Seen) -> tuple[Seen, ...]:
        """Return the instance in a place, or nothing where the place is free."""
        try:
            device = call(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, place)
        except CallError as error:
            if error.failure.code in {Code.NOT_FOUND, Code.INVALID_ARGUMENT}:
                return ()
            raise
        name = str(or_none(pynvml.nvmlDeviceGetName, device) or "")
        model, _, profile = name.partition(_MIG_NAME)
        uuid = str(call(pynvml.nvmlDeviceGetUUID, device))
        seen = Seen(uuid, model or card.model, card.capability, self._memory(device, uuid))
        return (seen._replace(profile=profile or _profile(device)),)

    def _memory(self, device: object, uuid: str) -> CardMemory | NvmlFailure:
        """
        Read what the card has: from r615 on the newer version of the answer is about the caller's
        cgroup, and good for nothing but what the driver reserves, which the old one counts as used.
        """
        try:
            info = call(pynvml.nvmlDeviceGetMemoryInfo, device)
            if uuid not in self._reserved:
                if len(self._reserved) >= _MOST_CARDS:
                    self._reserved.clear()
                self._reserved[uuid] = _reserved(device)
        except CallError as error:
            return error.failure
        reserved = self._reserved[uuid]
        used = max(int(info.used) - (reserved or 0), 0)
        return CardMemory(int(info.total), used, int(info.free), reserved)

    def _kind(self, device: object, uuid: str) -> CardKind:
        """Return what kind of card it is, asked until it has said so: that much stays for good."""
        kind = self._kinds.get(uuid)
        if kind is None:
            version = or_none(pynvml.nvmlDeviceGetCudaComputeCapability, device)
            name = or_none(pynvml.nvmlDeviceGetName, device)
            capability = None if version is None else (int(version[0]), int(version[1]))
            kind = CardKind(str(name or UNNAMED), capability)
            if name and capability:
                self._kinds[uuid] = kind
        return kind


def _limited(uuid: str, path: str) -> Limited:
    """Ask for a cgroup by its folder; drivers before r615 do not have the function."""
    device = call(pynvml.nvmlDeviceGetHandleByUUID, uuid)
    limits = pynvml.c_nvmlGetMemoryLimits_v1_t(nameSpace=os.fsencode(path))
    call(pynvml.nvmlDeviceGetMemoryLimits_v1, device, limits)
    return Limited(int(limits.softLimit), int(limits.hardLimit), int(limits.currentUsed))


def _sensed(uuid: str) -> CardSensors:
    """Ask what each sensor says; cards without one, MIG instances among them, leave it out."""
    device = call(pynvml.nvmlDeviceGetHandleByUUID, uuid)
    celsius = or_none(pynvml.nvmlDeviceGetTemperature, device, pynvml.NVML_TEMPERATURE_GPU)
    drawn = or_none(pynvml.nvmlDeviceGetPowerUsage, device)
    limit = or_none(pynvml.nvmlDeviceGetEnforcedPowerLimit, device)
    warmth = celsius if celsius is not None and celsius <= _MOST_CELSIUS else None
    return CardSensors(warmth, _watts(drawn), _watts(limit))


def _watts(milliwatts: int | None) -> int | None:
    """Round to watts; some drivers answer with nonsense for what a card cannot measure."""
    watts = None if milliwatts is None else round(milliwatts / 1000)
    return watts if watts is not None and watts <= _MOST_WATTS else None


def _optional(processes: tuple[GpuProcess, ...] | NvmlFailure) -> tuple[GpuProcess, ...]:
    """
    Take a list that not every card has for empty where it is absent; the device is a good one.
    """
    if not isinstance(processes, NvmlFailure):
        return processes
    error = CallError(processes)
    if error.absent:
        return ()
    raise error


def _is_cut(device: object) -> bool:
    """Return whether a card is in MIG mode; those that never heard of it are not."""
    try:
        current, _ = call(pynvml.nvmlDeviceGetMigMode, device)
    except CallError as error:
        if error.absent:
            return False
        raise
    return int(current) == _MIG_ON


def _profile(device: object) -> str:
    """Put a profile's name together where the driver does not say it."""
    size = or_none(pynvml.nvmlDeviceGetAttributes, device)
    if size is None:
        return UNNAMED
    return f"{size.gpuInstanceSliceCount}g.{round(size.memorySizeMB / 1024)}gb"


def _reserved(device: object) -> int | None:
    try:
        return int(call(pynvml.nvmlDeviceGetMemoryInfo, device, pynvml.nvmlMemory_v2).reserved)
    except CallError as error:
        if error.absent:
            return None
        raise
