"""What the child says of the work on each card, asked of a library that behaves as drivers do."""

import os
import time

import pytest

from agent.model.sample import CardSample, CardWork
from agent.nvml.sampler import Sampler
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
A100, H100 = "1", "2"


def work(sample: CardSample) -> CardWork:
    assert sample.work is not None, sample.work_trouble.text
    return sample.work


def next_work(sampler: Sampler, index: int = 0) -> CardWork:
    """Ask once the period of the driver in which we are is over."""
    time.sleep(2 * PERIOD_SECONDS)
    return work(cards(sampler)[index])


@pytest.fixture
def sampler(start: Start) -> Sampler:
    """Measure with every sample."""
    return start(work_seconds=0.0, interval_seconds=0.0)


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


def test_who_works_half_of_the_time_has_half_of_it(machine: State, sampler: Sampler) -> None:
    """A share is that of the time which an answer covers, however long nobody had worked before."""
    (holding,) = put(machine, "0", 1)
    cards(sampler)
    time.sleep(10 * PERIOD_SECONDS)
    cards(sampler)
    before = time.monotonic()
    holding.work(100)
    began = time.monotonic()
    time.sleep(10 * PERIOD_SECONDS)
    ended = time.monotonic()
    holding.work(0)
    after = time.monotonic()
    time.sleep(10 * PERIOD_SECONDS)
    found = next_work(sampler)
    (share,) = (found.workers or {}).values()
    covered = found.until - found.since

    assert (ended - began) / covered - 0.1 <= share <= (after - before) / covered + 0.1


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


def test_zombies_spoil_an_answer(machine: State, sampler: Sampler) -> None:
    """With entries that cannot be, none of the answer counts."""
    put(machine, "0", 1)[0].work(10)
    machine.faults.add(Fault(FaultAction.PAD, "nvmlDeviceGetProcessUtilization", argument=100))
    cards(sampler)

    assert next_work(sampler).garbled


def test_more_workers_than_the_buffer_holds(machine: State, sampler: Sampler) -> None:
    """A driver with more entries than expected is asked again with more room."""
    for holding in put(machine, "0", *([1] * 300)):
        holding.work(5)
    cards(sampler)

    assert 300 == len(next_work(sampler).workers or ())


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetProcessUtilization", "nvmlDeviceGetUtilizationRates"]
)
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


def test_a_question_that_hangs_is_left_alone(machine: State, start: Start) -> None:
    """
    A card that hangs when asked what is done there goes on telling its memory and processes, and
    the others tell everything.
    """
    sampler = start(work_seconds=0.0, interval_seconds=0.0, deadline_seconds=4.0)
    put(machine, "0", 5)
    machine.faults.add(Fault(FaultAction.HANG, "nvmlDeviceGetProcessUtilization", 0))
    for _ in range(20):
        first, second, _ = cards(sampler)
        if first.processes is not None and second.work is not None:
            break

    assert {0: 5} == held(first)
    assert 5 == used(first)
    assert "has ended 2 NVML processes in a row" in first.work_trouble.text
    assert second.work is not None


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
