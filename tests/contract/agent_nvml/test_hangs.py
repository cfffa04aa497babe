"""Calls that are slow, never return or take the process down."""

import time

from agent.model.sample import CardSample
from agent.nvml.sampler import Sampler
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import (
    COMPUTE,
    MEMORY,
    NOBODY,
    RECOVERY_SECONDS,
    Start,
    cards,
    held,
    put,
    recovered,
    used,
)
from tests.support.observing import PATIENCE_SECONDS

DEADLINE_SECONDS = 4.0
"""Half of it is what a busy machine may need for one call."""


def test_a_hanging_card_does_not_hide_the_others(start: Start, machine: State) -> None:
    """The child is killed in time and replaced; what was read before the hang counts."""
    sampler = start(deadline_seconds=DEADLINE_SECONDS)
    cards(sampler)
    machine.faults.add(Fault(FaultAction.HANG, MEMORY, card=1, times=1))
    begin = time.monotonic()
    sample = sampler.sample(NOBODY)
    seconds = time.monotonic() - begin
    well = sampler.sample(NOBODY)

    assert seconds < PATIENCE_SECONDS
    assert [0, None] == [used(card) for card in sample.cards[:2]]
    assert "gave no answer" in sample.cards[1].trouble.text
    assert ([0, 0, 0], 1) == ([used(card) for card in well.cards], sampler.restarts)


def test_a_card_that_always_hangs_is_left_alone(start: Start, machine: State) -> None:
    """After two children the others are read without it, at full speed."""
    sampler = start(deadline_seconds=2.4)
    recovered(sampler)
    machine.faults.add(Fault(FaultAction.HANG, MEMORY, card=0))
    for _ in range(20):
        sample = sampler.sample(NOBODY)
        if sample.cards[1].memory is not None:
            break

    assert [None, 0, 0] == [used(card) for card in sample.cards]
    assert "left alone" in sample.cards[0].trouble.text


def test_nvml_that_never_opens_is_reported(start: Start, machine: State) -> None:
    """While NVML does not open, samples come in time and say so."""
    sampler = start(deadline_seconds=0.3, start_seconds=0.5)
    machine.faults.add(Fault(FaultAction.HANG, "nvmlInit"))
    first = sampler.sample(NOBODY)
    second = sampler.sample(NOBODY)

    assert ((), ()) == (first.cards, second.cards)
    assert "NVML is being opened" in first.trouble.text
    assert second.trouble.text
    assert sampler.restarts >= 1


def test_a_crash_is_survived(sampler: Sampler, machine: State) -> None:
    """A driver that ends its caller by SIGSEGV costs one list, not the agent."""
    put(machine, "0", 100)
    machine.faults.add(Fault(FaultAction.CRASH, COMPUTE, 0, times=1))
    broken = cards(sampler)[0]
    well = cards(sampler)[0]

    assert (100, None) == (used(broken), held(broken))
    assert "Segmentation fault" in broken.trouble.text
    assert ({0: 100}, 1) == (held(well), sampler.restarts)


def test_a_list_that_always_crashes_is_left_alone(sampler: Sampler, machine: State) -> None:
    """After two children the card's memory is still read, and the other cards' lists."""
    put(machine, "1", 100)
    machine.faults.add(Fault(FaultAction.CRASH, COMPUTE, 0))
    cards(sampler)
    cards(sampler)
    sample = cards(sampler)

    assert [0, 100, 0] == [used(card) for card in sample]
    assert [None, {0: 100}, {}] == [held(card) for card in sample]
    assert "left alone" in sample[0].trouble.text


def test_slow_lists_are_waited_for(sampler: Sampler, machine: State) -> None:
    """A list that takes its time is a list."""
    put(machine, "0", 100)
    machine.faults.add(Fault.delay(0.1, COMPUTE, 0))

    assert {0: 100} == held(cards(sampler)[0])
    assert 0 == sampler.restarts


def test_a_list_may_take_most_of_a_sample(start: Start, machine: State) -> None:
    """A list that takes more than half of a sample's time is waited for, and ends no child."""
    sampler = start(deadline_seconds=DEADLINE_SECONDS)
    recovered(sampler)
    put(machine, "0", 100)
    machine.faults.add(Fault.delay(0.6 * DEADLINE_SECONDS, COMPUTE, 0))

    assert [{0: 100}] * 2 == [held(cards(sampler)[0]) for _ in range(2)]
    assert 0 == sampler.restarts


def test_lists_that_are_slow_on_all_cards_hide_none(start: Start, machine: State) -> None:
    """
    Where only some of the lists fit into a sample, memory is read in each, and each card's turn
    comes.
    """
    sampler = start(deadline_seconds=DEADLINE_SECONDS)
    recovered(sampler)
    for card in range(3):
        put(machine, f"{card}", 100)
    machine.faults.add(Fault.delay(0.6 * DEADLINE_SECONDS, COMPUTE))
    looks = [cards(sampler) for _ in range(5)]

    assert None not in [used(card) for look in looks[2:] for card in look]
    assert [{0: 100}] * 3 == [held(card) for card in looks[-1]]
    assert 0 == sampler.restarts


def test_a_list_that_takes_longer_than_a_sample_is_a_list(start: Start, machine: State) -> None:
    """
    A list for which two children have died comes late by a third one, while the other cards are
    read as ever; once it is fast again, it comes in time again.
    """
    sampler = start(deadline_seconds=1.0)
    recovered(sampler)
    put(machine, "0", 100)
    put(machine, "1", 100)
    slow = machine.faults.add(Fault.delay(1.5, COMPUTE, 0))
    seen = _until(sampler, {0: 100})
    machine.faults.remove(slow)
    put(machine, "0", 300)
    _until(sampler, {0: 400})  # what a process holds twice adds up here
    restarts = sampler.restarts
    well = cards(sampler)

    assert {0: 100} == held(seen[1])
    assert ["", ""] == [card.trouble.text for card in well[:2]]
    assert restarts <= 3


def _until(sampler: Sampler, expected: dict[int, int | None]) -> tuple[CardSample, ...]:
    """Sample, with a suspect, until its list is this one."""
    end = time.monotonic() + RECOVERY_SECONDS
    look = cards(sampler)
    while held(look[0]) != expected:
        assert time.monotonic() < end, look
        time.sleep(0.05)
        look = cards(sampler, look[0].card.uuid)
    return look


def test_what_does_not_fit_into_one_sample_comes_with_the_next(
    start: Start, machine: State
) -> None:
    """
    A driver that answers, but slowly, keeps its child: nobody waits twice for the same answer.
    """
    slow = State.create(machine.path, "8xT4")
    sampler = start(deadline_seconds=2.4)
    recovered(sampler)
    slow.faults.add(Fault.delay(0.4, MEMORY))
    late = cards(sampler)
    later = cards(sampler)

    assert (0, None) == (used(late[0]), used(late[7]))
    assert "has not answered yet" in late[7].trouble.text
    assert (0, 0) == (used(later[7]), sampler.restarts)
