"""Minutes of a driver that does its worst, on real children."""

import os
import random
import time

import pytest

from agent.model.sample import Sample
from gpufence.quantity import MIB
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import (
    COMPUTE,
    HANDLE,
    MEMORY,
    NOBODY,
    UUID,
    Start,
    put,
    recovered,
)

SECONDS = 90.0
WHOLE_CARDS = 4
DEADLINE_SECONDS = 2.0
FUNCTIONS = (MEMORY, COMPUTE, HANDLE, UUID, "nvmlDeviceGetMigMode")
ALL_OF_THEM = ("nvmlInit", "nvmlDeviceGetCount")
CODES = (
    NvmlCode.UNKNOWN,
    NvmlCode.GPU_IS_LOST,
    NvmlCode.LIB_RM_VERSION_MISMATCH,
    NvmlCode.INSUFFICIENT_SIZE,
)


def disturb(machine: State, chance: random.Random) -> None:
    """Cure everything, add a fault, or replace the driver; mostly nothing."""
    if chance.random() < 0.3:
        machine.faults.clear()
    if chance.random() < 0.03:
        machine.upgrade_driver(f"590.{chance.randrange(10_000)}")
    if chance.random() < 0.75:
        return
    function = chance.choice(FUNCTIONS + ALL_OF_THEM)
    card = None if function in ALL_OF_THEM else chance.choice([None, 0, 1, 2, WHOLE_CARDS])
    times = chance.choice([0, 1, 2])
    machine.faults.add(
        chance.choice(
            [
                Fault(FaultAction.HANG, function, card, times=times),
                Fault(FaultAction.CRASH, function, card, times=times),
                Fault.delay(0.2, function, card),
                Fault.code(chance.choice(CODES), function, card, times=times),
            ]
        )
    )


def check(sample: Sample) -> None:
    """Hold every card to its own figures, or to a reason for having none."""
    for item in sample.cards:
        whole = item.card.index < WHOLE_CARDS

        assert (item.memory is not None and item.processes is not None) or item.trouble.text
        if whole and item.memory is not None:
            assert (2000 + item.card.index) * MIB == item.memory.used_bytes
        if whole and item.processes is not None:
            assert 1 == len(item.processes.processes)


@pytest.mark.soak
def test_a_driver_at_its_worst_is_survived(start: Start, machine: State) -> None:
    """
    Samples are in time and honest throughout, all is well once the driver is, and no descriptor is
    left behind.
    """
    machine = State.create(machine.path, f"{WHOLE_CARDS}xT4,A100-40:3g.20gb+1g.5gb,H100")
    for index in range(WHOLE_CARDS):
        put(machine, str(index), 2000 + index)
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a plain count
    sampler = start(
        deadline_seconds=DEADLINE_SECONDS,
        start_seconds=2 * DEADLINE_SECONDS,
        restart_seconds=0.05,
        restart_limit_seconds=0.2,
        avoid_seconds=0.5,
        avoid_limit_seconds=1.0,
        list_seconds=1.0,
    )
    recovered(sampler)
    chance = random.Random(1)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        disturb(machine, chance)
        begin = time.monotonic()
        sample = sampler.sample(NOBODY)

        assert time.monotonic() - begin < DEADLINE_SECONDS + 1
        check(sample)
    machine.faults.clear()
    for _ in range(200):
        sample = recovered(sampler)
        if not any(item.trouble.text for item in sample.cards):
            break
        time.sleep(0.02)
    sampler.close()

    assert {""} == {item.trouble.text for item in sample.cards}
    assert sampler.restarts > 1
    assert descriptors == len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a plain count
