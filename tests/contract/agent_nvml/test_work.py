"""What the child says of work on each card and of the most that processes have held."""

import os
import time

import pytest

from agent.model.sample import CardSample, CardWork
from agent.nvml.sampler import Sampler
from gpufence.quantity import MIB
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.processes import Holding
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import (
    FIRST_PID,
    NOBODY,
    Start,
    cards,
    held,
    put,
    used,
)
from tests.support.observing import wait_until

PERIOD_SECONDS = 0.1
WORK = "nvmlDeviceGetProcessUtilization"
STATS = "nvmlDeviceGetAccountingStats"
MODE = "nvmlDeviceGetAccountingMode"


def work(sample: CardSample) -> CardWork:
    assert sample.work is not None, sample.work_trouble.text
    return sample.work


def next_work(sampler: Sampler, index: int = 0) -> CardWork:
    """Ask once the period of the driver in which we are is over."""
    time.sleep(2 * PERIOD_SECONDS)
    return work(cards(sampler)[index])


@pytest.fixture
def sampler(start: Start) -> Sampler:
    """Measure and list with every sample."""
    return start(work_seconds=0.0, list_seconds=0.0, interval_seconds=0.0)


@pytest.fixture
def accounted(machine: State) -> State:
    machine.cards[0].accounting = True
    return machine


def test_the_first_answer_covers_nothing(machine: State, sampler: Sampler) -> None:
    """Whoever worked before the first question was asked is not taken for a worker."""
    put(machine, "0", 1)[0].work(90)
    time.sleep(2 * PERIOD_SECONDS)
    first = work(cards(sampler)[0])

    assert first.until == first.since
    assert 90.0 == first.percent


def test_who_works_is_told_apart(machine: State, sampler: Sampler) -> None:
    """Of two processes on a card only the one at work is a worker."""
    busy, _ = put(machine, "0", 1, 1)
    cards(sampler)
    busy.work(30)

    assert {FIRST_PID} == set(next_work(sampler).workers or ())


def test_answers_follow_each_other_without_a_hole(machine: State, sampler: Sampler) -> None:
    """Each answer begins where the one before ended, and a burst between two is in the second."""
    (holding,) = put(machine, "0", 1)
    first = work(cards(sampler)[0])
    holding.work(100)
    time.sleep(PERIOD_SECONDS / 10)
    holding.work(0)
    second = next_work(sampler)
    third = next_work(sampler)

    assert (first.until, second.until) == (second.since, third.since)
    assert ({FIRST_PID}, {}) == (set(second.workers or ()), third.workers)


def test_it_is_asked_every_few_seconds(machine: State, start: Start) -> None:
    """Samples in between show the last answer again."""
    sampler = start(work_seconds=60.0)
    put(machine, "0", 1)

    assert work(cards(sampler)[0]) is work(cards(sampler)[0])


def test_more_workers_than_the_buffer_holds(machine: State, sampler: Sampler) -> None:
    """A driver with more entries than expected is asked again with more room."""
    for holding in put(machine, "0", *([1] * 300)):
        holding.work(5)
    cards(sampler)

    assert 300 == len(next_work(sampler).workers or ())


@pytest.mark.parametrize("function", [WORK, "nvmlDeviceGetUtilizationRates"])
def test_a_card_that_does_not_tell(machine: State, sampler: Sampler, function: str) -> None:
    """A failure is the reason why nothing is known, and the time after it begins anew."""
    fault = machine.faults.add(Fault.code(NvmlCode.NOT_SUPPORTED, function, 0))
    before = cards(sampler)[0]
    machine.faults.remove(fault)
    after = next_work(sampler)

    assert before.work is None
    assert f"{function}: code 3" in before.work_trouble.text
    assert before.memory is not None
    assert after.since == after.until


def test_an_instance_on_hopper_is_measured(machine: State, sampler: Sampler) -> None:
    """
    Of a MIG instance it is known how much of the time there was work, and nothing of its neighbour.
    """
    card = machine.cards[2]
    card.cut("3g.40gb", "3g.40gb")
    first, _ = (hold(machine, cut.uuid) for cut in card.instances)
    before = cards(sampler)
    first.work(50)
    time.sleep(2 * PERIOD_SECONDS)
    found = {item.card.uuid: work(item) for item in cards(sampler) if item.card.mig}
    busy, idle = (found[cut.uuid] for cut in card.instances)

    assert 0 < busy.percent <= 50
    assert 0 == idle.percent
    assert (None, None) == (busy.workers, idle.workers)
    assert busy.since == next(work(i).until for i in before if i.card.uuid == busy_uuid(machine))


def busy_uuid(machine: State) -> str:
    return machine.cards[2].instances[0].uuid


def hold(machine: State, card: str) -> Holding:
    return machine.processes.put(machine.find(card), os.getpid(), 2**20)


def test_an_instance_on_ampere_is_not(machine: State, sampler: Sampler) -> None:
    """Without performance monitoring nothing is known of an instance."""
    machine.cards[1].cut("3g.20gb")
    (sample,) = (item for item in sampler.sample(NOBODY).cards if item.card.mig)

    assert sample.work is None
    assert "nvmlGpmQueryDeviceSupport: code 3" in sample.work_trouble.text


@pytest.mark.parametrize("function", [WORK, STATS])
def test_a_question_that_hangs_is_left_alone(accounted: State, start: Start, function: str) -> None:
    """A card that hangs when asked for it goes on telling its memory and processes."""
    sampler = start(work_seconds=0.0, list_seconds=0.0, interval_seconds=0.0, deadline_seconds=4.0)
    put(accounted, "0", 5)
    accounted.faults.add(Fault(FaultAction.HANG, function, 0))
    seen: list[CardSample] = []
    for _ in range(20):
        first, second, _ = cards(sampler)
        seen.append(first)
        known = len(seen) > 2 and all(held(item) == {0: 5} for item in seen[-3:])
        if known and second.work is not None:
            break

    assert [({0: 5}, 5)] * 3 == [(held(item), used(item)) for item in seen[-3:]]
    assert second.work is not None
    if function == WORK:
        assert "has ended 2 NVML processes in a row" in first.work_trouble.text


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


def test_a_card_says_how_warm_it_is_and_what_it_draws(machine: State, sampler: Sampler) -> None:
    """Temperature, power and its limit come with a later sample."""
    busy = put(machine, "0", 1)[0]
    busy.work(100)
    wait_until(lambda: cards(sampler)[0].sensors.celsius)
    seen = cards(sampler)[0].sensors

    assert seen.watts is not None
    assert seen.watts == seen.most_watts


def test_a_sensor_that_a_card_lacks_is_unknown(machine: State, sampler: Sampler) -> None:
    """What the driver does not tell leaves the other figures as they are."""
    machine.faults.add(Fault.code(NvmlCode.NOT_SUPPORTED, "nvmlDeviceGetPowerUsage"))
    wait_until(lambda: cards(sampler)[0].sensors.celsius)

    assert cards(sampler)[0].sensors.watts is None
