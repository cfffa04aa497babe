"""The most that processes have ever held, asked of a library that accounts as drivers do."""

import os

import pytest

from agent.model.sample import CardSample
from agent.nvml.sampler import Sampler
from gpufence.quantity import MIB
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import FIRST_PID, Start, cards, held, put, used

STATS = "nvmlDeviceGetAccountingStats"
MODE = "nvmlDeviceGetAccountingMode"


@pytest.fixture
def sampler(start: Start) -> Sampler:
    """List every card with every sample."""
    return start(list_seconds=0.0, interval_seconds=0.0)


@pytest.fixture
def accounted(machine: State) -> State:
    machine.cards[0].accounting = True
    return machine


def peaks(sample: CardSample) -> dict[int, int]:
    """Return them in MiB, by the number the process was put with."""
    return {pid - FIRST_PID: amount // MIB for pid, amount in sample.peaks.items()}


def test_what_was_held_between_two_looks_is_known(accounted: State, sampler: Sampler) -> None:
    """Memory that came and went between two samples is the process's most."""
    (holding,) = put(accounted, "0", 100)
    first = cards(sampler)[0]
    holding.resize(5000 * MIB)
    holding.resize(100 * MIB)
    second = cards(sampler)[0]

    assert ({0: 100}, {0: 100}) == (peaks(first), held(first))
    assert ({0: 5000}, {0: 100}) == (peaks(second), held(second))


def test_who_has_just_ended_is_told_of_once(accounted: State, sampler: Sampler) -> None:
    """A process that took much and ended is not on the list, and its most is told once."""
    (holding,) = put(accounted, "0", 100)
    cards(sampler)
    holding.resize(5000 * MIB)
    holding.release()
    second, third = cards(sampler)[0], cards(sampler)[0]

    assert ({}, {0: 5000}) == (held(second), peaks(second))
    assert {} == peaks(third)


def test_only_new_lists_bring_it(accounted: State, start: Start) -> None:
    """A sample that keeps the list of the one before asks nobody for anything."""
    sampler = start(list_seconds=600.0)
    put(accounted, "0", 100)
    first, second = cards(sampler)[0], cards(sampler)[0]

    assert ({0: 100}, {}) == (peaks(first), peaks(second))


def test_without_accounting_nobody_is_asked_again(machine: State, sampler: Sampler) -> None:
    """A driver that does not account is asked for its mode, and left alone for minutes."""
    put(machine, "0", 100)
    for _ in range(3):
        assert {} == peaks(cards(sampler)[0])

    assert len(machine.cards) == machine.calls(MODE)
    assert 0 == machine.calls(STATS)


def test_an_instance_has_none(machine: State, sampler: Sampler) -> None:
    """Of a MIG instance nothing is asked but the mode, which it does not know."""
    machine.cards[1].cut("3g.20gb")
    uuid = machine.cards[1].instances[0].uuid
    machine.processes.put(machine.find(uuid), os.getpid(), MIB)
    (sample,) = (item for item in cards(sampler) if item.card.mig)

    assert {} == sample.peaks
    assert sample.processes is not None


def test_a_driver_without_the_functions_is_like_one_that_is_off(
    accounted: State, start: Start
) -> None:
    """What a driver does not know or may not tell costs nobody anything."""
    accounted.faults.add(Fault.code(NvmlCode.NO_PERMISSION, MODE))
    put(accounted, "0", 100)
    sample = cards(start(list_seconds=0.0))[0]

    assert ({}, {0: 100}) == (peaks(sample), held(sample))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(FaultAction.NOT_AVAILABLE, STATS),
        Fault.code(NvmlCode.NOT_FOUND, STATS),
        Fault.code(NvmlCode.NOT_SUPPORTED, STATS),
        Fault.code(NvmlCode.UNKNOWN, STATS),
        Fault.code(NvmlCode.UNKNOWN, MODE),
        Fault(FaultAction.CRASH, STATS, times=1),
    ],
    ids=["n/a", "not found", "off by now", "fails", "mode fails", "crashes"],
)
def test_what_fails_costs_no_list(accounted: State, sampler: Sampler, fault: Fault) -> None:
    """Lists and memory are there whatever becomes of accounting."""
    accounted.faults.add(fault)
    put(accounted, "0", 100)
    for _ in range(20):
        sample = cards(sampler)[0]
        if sample.memory is not None and sample.processes is not None:
            break

    assert ({}, {0: 100}, 100) == (peaks(sample), held(sample), used(sample))


def test_a_question_that_hangs_is_left_alone(accounted: State, start: Start) -> None:
    """A card that hangs when asked for it goes on telling its memory and processes."""
    sampler = start(list_seconds=0.0, interval_seconds=0.0, deadline_seconds=4.0)
    put(accounted, "0", 5)
    accounted.faults.add(Fault(FaultAction.HANG, STATS))
    seen = []
    for _ in range(20):
        seen.append(cards(sampler)[0])
        if len(seen) > 2 and all(held(item) == {0: 5} for item in seen[-3:]):
            break

    assert [{0: 5}] * 3 == [held(item) for item in seen[-3:]]
