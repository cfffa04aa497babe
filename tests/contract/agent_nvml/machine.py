"""Short words for what the tests do with a machine and see in a sample."""

import time
from typing import Protocol

from agent.model.sample import CardSample, Sample
from agent.nvml.sampler import Sampler
from gpufence.quantity import MIB
from simulator.nvml.layout import Lists
from simulator.nvml.processes import Holding
from simulator.nvml.state import State

NOBODY: frozenset[str] = frozenset()
RECOVERY_SECONDS = 30.0
FIRST_PID = 1_000_001
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"
MPS = "nvmlDeviceGetMPSComputeRunningProcesses"
MEMORY = "nvmlDeviceGetMemoryInfo"
HANDLE = "nvmlDeviceGetHandleByIndex"
UUID = "nvmlDeviceGetUUID"


class Start(Protocol):
    """Starts a sampler on a variant of the library, with other settings than usual."""

    def __call__(self, variant: str = ..., **more: object) -> Sampler: ...


def put(
    machine: State, card: str = "0", *mebibytes: int, lists: Lists = Lists.COMPUTE
) -> list[Holding]:
    """List processes that need not exist, one for each amount."""
    place = machine.find(card)
    return [
        machine.processes.put(place, FIRST_PID + number, amount * MIB, lists=lists, kept=True)
        for number, amount in enumerate(mebibytes)
    ]


def cards(sampler: Sampler, *suspects: str) -> tuple[CardSample, ...]:
    return sampler.sample(frozenset(suspects)).cards


def recovered(sampler: Sampler) -> Sample:
    """Sample until nothing is wrong any more."""
    end = time.monotonic() + RECOVERY_SECONDS
    while True:
        sample = sampler.sample(NOBODY)
        if not sample.trouble.text or time.monotonic() > end:
            return sample
        time.sleep(0.01)


def used(card: CardSample) -> int | None:
    """Return a card's used MiB, None where unknown."""
    return None if card.memory is None else card.memory.used_bytes // MIB


def held(card: CardSample) -> dict[int, int | None] | None:
    """Return what each process holds in MiB, by the number it was put with; None: list unknown."""
    if card.processes is None:
        return None
    return {
        item.pid - FIRST_PID: None if item.used_bytes is None else item.used_bytes // MIB
        for item in card.processes.processes
    }
