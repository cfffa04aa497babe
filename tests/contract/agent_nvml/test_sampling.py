"""What a sample says of healthy cards, and when their processes are listed."""

import os
from pathlib import Path

import pytest

from agent.clock import boottime
from agent.nvml.sampler import Sampler
from gpufence.cards import Card
from gpufence.names import SIMULATOR_STATE
from gpufence.quantity import MIB
from simulator.nvml.build import LIMITED
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.layout import Lists
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import COMPUTE, NOBODY, Start, cards, held, put, used
from tests.support.driver import set_limit


def test_cards_are_described(sampler: Sampler, machine: State) -> None:
    """UUID, index, model, memory and compute capability of every card, and the driver's version."""
    sample = sampler.sample(NOBODY)
    expected = Card(machine.cards[2].uuid, 2, "NVIDIA H100 80GB HBM3", 81559 * MIB, (9, 0))

    assert expected == sample.cards[2].card
    assert [card.uuid for card in machine.cards] == [item.card.uuid for item in sample.cards]
    assert ("580.95.05", "") == (sample.driver, sample.trouble.text)


def test_memory_is_the_cards_own_account(sampler: Sampler, machine: State) -> None:
    """Total, used, free and reserved memory, used without what is reserved."""
    put(machine, "0", 500)
    memory = cards(sampler)[0].memory

    assert memory is not None
    assert (15360, 500, 14430, 430) == (
        memory.total_bytes // MIB,
        memory.used_bytes // MIB,
        memory.free_bytes // MIB,
        (memory.reserved_bytes or 0) // MIB,
    )


@pytest.mark.parametrize("limit", [1000, 4000])
def test_memory_is_the_cards_whatever_limits_the_agent(
    start: Start, machine: State, tmp_path: Path, limit: int
) -> None:
    """A driver that answers for the cgroup of whoever asks changes nothing of a card's memory."""
    put(machine, "0", 2000)
    group = GroupTree(tmp_path / "cgroup").add("agent")
    machine.groups.totals_capped = True
    variables = {**os.environ, SIMULATOR_STATE: str(machine.path), GROUP: str(group)}
    sampler = start(LIMITED, environment=variables)
    before = cards(sampler)[0]
    set_limit(machine.path, group, limit * MIB)
    after = cards(sampler)[0]
    new = cards(start(LIMITED, environment=variables))[0]

    assert (15360, 2000) == (after.card.memory_bytes // MIB, used(after))
    assert before.memory == after.memory
    assert 15360 == new.card.memory_bytes // MIB


def test_the_time_is_that_of_the_kernel(sampler: Sampler) -> None:
    """A sample is dated before its lists, and those before the driver was asked, since boot."""
    before = boottime()
    sample = sampler.sample(NOBODY)
    listed = sample.cards[0].processes

    assert listed is not None
    assert before <= sample.taken_at <= listed.listed_at <= boottime()


def test_processes_are_listed_with_what_they_hold(sampler: Sampler, machine: State) -> None:
    """Each card shows its own processes."""
    put(machine, "0", 100, 200)
    put(machine, "2", 300)

    assert [{0: 100, 1: 200}, {}, {0: 300}] == [held(card) for card in cards(sampler)]


def test_a_quiet_card_is_not_listed_again(sampler: Sampler, machine: State) -> None:
    """
    While nothing moves the driver is asked for memory only, and the list stays the same object.
    """
    first = cards(sampler)
    before = machine.calls(COMPUTE)
    second = cards(sampler)

    assert before == machine.calls(COMPUTE)
    assert all(one.processes is two.processes for one, two in zip(first, second, strict=True))


def test_a_card_whose_use_moves_is_listed_again(sampler: Sampler, machine: State) -> None:
    """More than 64 MiB since the last list, in small steps too."""
    (holding,) = put(machine, "0", 100)
    cards(sampler)
    holding.grow(60 * MIB)
    unmoved = held(cards(sampler)[0])
    holding.grow(60 * MIB)

    assert {0: 100} == unmoved
    assert {0: 220} == held(cards(sampler)[0])


def test_a_suspect_is_listed_again(sampler: Sampler, machine: State) -> None:
    """Whoever the judge suspects is looked at in every sample."""
    (holding,) = put(machine, "0", 100)
    cards(sampler)
    holding.grow(10 * MIB)

    assert {0: 110} == held(cards(sampler, machine.cards[0].uuid)[0])


def test_lists_are_renewed_by_age(start: Start, machine: State) -> None:
    """A list that is too old is renewed though nothing moves."""
    sampler = start(list_seconds=0.0)
    (holding,) = put(machine, "0", 100)
    cards(sampler)
    holding.grow(MIB)

    assert {0: 101} == held(cards(sampler)[0])


def test_nvml_is_opened_once(sampler: Sampler, machine: State) -> None:
    """Samples share one init, which a shutdown balances at the end."""
    for _ in range(3):
        cards(sampler)
    sampler.close()

    assert 1 == machine.calls("nvmlInit")
    assert 1 == machine.calls("nvmlShutdown")
    assert 0 == sampler.restarts


def test_cards_keep_their_identity_when_indices_change(sampler: Sampler, machine: State) -> None:
    """A card is its UUID: after a new order each keeps its memory and its processes."""
    put(machine, "0", 100)
    cards(sampler)
    machine.reorder([2, 1, 0])
    last = cards(sampler)[2]

    assert (machine.cards[0].uuid, 2) == (last.card.uuid, last.card.index)
    assert ({0: 100}, 100) == (held(last), used(last))


@pytest.mark.parametrize("lists", [Lists.COMPUTE | Lists.GRAPHICS, Lists.GRAPHICS])
def test_the_lists_are_merged(sampler: Sampler, machine: State, lists: Lists) -> None:
    """A process in several lists, or in another one than compute, counts once."""
    put(machine, "0", 100, lists=lists)

    assert {0: 100} == held(cards(sampler)[0])


def test_mps_clients_mark_their_card(sampler: Sampler, machine: State) -> None:
    """A card with a client of MPS says so; the others do not."""
    put(machine, "1", 100, lists=Lists.MPS | Lists.COMPUTE)
    put(machine, "0", 100)
    sample = cards(sampler)

    assert [False, True, False] == [card.mps for card in sample]
    assert {0: 100} == held(sample[1])


def test_a_real_process_is_seen_and_missed(sampler: Sampler, machine: State) -> None:
    """What this process takes shows under its PID, and no more once it gives it back."""
    holding = machine.processes.hold(machine.find("0"), 300 * MIB)
    listed = cards(sampler)[0].processes
    holding.release()

    assert listed is not None
    assert [os.getpid()] == [item.pid for item in listed.processes]
    assert {} == held(cards(sampler)[0])


@pytest.mark.parametrize(("kinds", "seen"), [("GB10", 0), ("T4,GB10", 1)])
def test_a_card_without_memory_of_its_own_is_unfenced(
    start: Start, machine: State, kinds: str, seen: int
) -> None:
    """A card that shares the machine's memory is named as unfenced, and nothing is wrong."""
    state = State.create(machine.path, kinds)
    sample = start().sample(NOBODY)
    (unfenced,) = sample.unfenced

    assert (seen, "") == (len(sample.cards), sample.trouble.text)
    assert f"NVIDIA GB10 ({state.cards[-1].uuid}) has no memory of its own" in unfenced.text
