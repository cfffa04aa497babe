"""What a sample says of cards, whole or cut, and of the processes on them."""

import os
from pathlib import Path

import pytest

from agent.clock import boottime
from agent.nvml.sampler import Sampler
from gpufence.cards import Card, Instance
from gpufence.names import SIMULATOR_STATE
from gpufence.quantity import MIB
from simulator.nvml.build import LIMITED, VARIANTS, Variant
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.layout import FaultAction, Lists
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import (
    COMPUTE,
    GRAPHICS,
    MPS,
    NOBODY,
    UUID,
    Start,
    cards,
    held,
    put,
    used,
)
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


def test_a_suspect_is_listed_again(sampler: Sampler, machine: State) -> None:
    """Whoever the judge suspects is looked at in every sample."""
    (holding,) = put(machine, "0", 100)
    cards(sampler)
    holding.grow(10 * MIB)

    assert {0: 110} == held(cards(sampler, machine.cards[0].uuid)[0])


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


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_driver_is_read_right(start: Start, machine: State, variant: Variant) -> None:
    """Missing versions and entries of 16, 24 or 32 bytes show the same processes."""
    put(machine, "0", 100, 200, 300)
    put(machine, "2", 400)
    sampler = start(variant.name)
    sample = sampler.sample(frozenset())

    assert variant.driver == sample.driver
    assert [{0: 100, 1: 200, 2: 300}, {}, {0: 400}] == [held(card) for card in sample.cards]
    assert {""} == {card.trouble.text for card in sample.cards}


def test_the_oldest_driver_tells_no_reserved_memory(start: Start, machine: State) -> None:
    """
    Without version 2 of the memory info what is reserved is unknown, and part of what is used.
    """
    put(machine, "0", 100)
    card = cards(start("450"))[0]

    assert card.memory is not None
    assert None is card.memory.reserved_bytes
    assert 530 == used(card)


def test_mps_is_recognised_on_older_drivers(start: Start, machine: State) -> None:
    """A driver with version 2 of the lists alone shows clients of MPS as well."""
    put(machine, "0", 100, lists=Lists.MPS)

    assert cards(start("535.98"))[0].mps


def test_a_full_card_is_listed_whole(sampler: Sampler, machine: State) -> None:
    """A thousand processes are a thousand processes."""
    machine.faults.add(Fault(FaultAction.PAD, COMPUTE, 2, argument=1000))

    assert 1000 == len(held(cards(sampler)[2]) or ())


def test_memory_that_is_not_available_is_none(sampler: Sampler, machine: State) -> None:
    """N/A is neither zero nor huge, all the way."""
    put(machine, "0", 100)
    machine.faults.add(Fault(FaultAction.NOT_AVAILABLE, COMPUTE))

    assert {0: None} == held(cards(sampler)[0])


@pytest.mark.parametrize(
    "fault",
    [Fault(FaultAction.KEEP, COMPUTE, 0, argument=0), Fault(FaultAction.ZERO, COMPUTE, 0)],
    ids=["nobody", "zero bytes"],
)
def test_a_wrong_pid_namespace_is_no_idle_card(
    sampler: Sampler, machine: State, fault: Fault
) -> None:
    """A card in use that charges nobody has an unknown list, with the likely reason."""
    put(machine, "0", 9000)
    machine.faults.add(fault)
    card = cards(sampler)[0]

    assert (None, 9000) == (held(card), used(card))
    assert "hostPID" in card.trouble.text


@pytest.mark.parametrize("function", [COMPUTE, GRAPHICS, MPS])
def test_one_list_that_fails_makes_all_unknown(
    sampler: Sampler, machine: State, function: str
) -> None:
    """Half of the processes would look like all of them."""
    put(machine, "0", 100)
    machine.faults.add(Fault.code(NvmlCode.UNKNOWN, function, 0))
    card = cards(sampler)[0]

    assert (None, 100) == (held(card), used(card))
    assert "code 999" in card.trouble.text


@pytest.mark.parametrize("function", [GRAPHICS, MPS])
def test_a_list_that_a_card_does_not_have_is_empty(
    sampler: Sampler, machine: State, function: str
) -> None:
    """Cards that know no graphics, or no MPS, have no such processes."""
    put(machine, "0", 100)
    machine.faults.add(Fault.code(NvmlCode.NOT_SUPPORTED, function, 0))
    card = cards(sampler)[0]

    assert ({0: 100}, "") == (held(card), card.trouble.text)


CARD = 1  # the A100-40


@pytest.fixture
def cut(machine: State) -> State:
    """Return the machine with its A100 cut into a large and two small instances."""
    machine.cards[CARD].cut("3g.20gb", "1g.5gb", "1g.5gb")
    return machine


def uuids(sampler: Sampler) -> list[str]:
    return [item.card.uuid for item in cards(sampler)]


def test_each_instance_is_a_card(sampler: Sampler, cut: State) -> None:
    """Instances come in their card's place, with memory and processes of their own."""
    parent = cut.cards[CARD]
    put(cut, f"{CARD}:1", 500)
    sample = cards(sampler)
    expected = Card(
        parent.instances[0].uuid,
        CARD,
        "NVIDIA A100-SXM4-40GB",
        20096 * MIB,
        (8, 0),
        Instance(parent.uuid, "3g.20gb"),
    )

    assert expected == sample[1].card
    assert ["", "3g.20gb", "1g.5gb", "1g.5gb", ""] == [
        "" if item.card.mig is None else item.card.mig.profile for item in sample
    ]
    assert [0, 500, 0] == [used(card) for card in sample[1:4]]
    assert [{}, {0: 500}, {}] == [held(card) for card in sample[1:4]]


def test_a_profile_is_worked_out_where_no_name_tells(sampler: Sampler, cut: State) -> None:
    """Slices and memory name the profile of an instance whose name cannot be read."""
    cut.faults.add(Fault(FaultAction.GARBLE, "nvmlDeviceGetName", card=CARD))
    profiles = [item.card.mig.profile for item in cards(sampler) if item.card.mig]

    assert ["3g.20gb", "1g.5gb", "1g.5gb"] == profiles


def test_an_instance_may_be_of_no_known_profile(sampler: Sampler, cut: State) -> None:
    """
    Without name and attributes the profile is unknown, and the instance measured all the same.
    """
    cut.faults.add(Fault(FaultAction.GARBLE, "nvmlDeviceGetName", card=CARD))
    cut.faults.add(Fault.code(NvmlCode.NOT_SUPPORTED, "nvmlDeviceGetAttributes_v2"))
    first = cards(sampler)[1]

    assert first.card.mig is not None
    assert ("unknown", 0) == (first.card.mig.profile, used(first))


@pytest.mark.parametrize("reuse", [False, True])
def test_a_new_cut_is_seen_at_once(sampler: Sampler, cut: State, *, reuse: bool) -> None:
    """Old instances are gone and new ones there, whatever old handles mean now."""
    before = uuids(sampler)
    cut.cards[CARD].cut("2g.10gb", reuse_handles=reuse)
    after = uuids(sampler)

    assert (5, 3) == (len(before), len(after))
    assert cut.cards[CARD].instances[0].uuid == after[1]


def test_an_instance_that_fails_leaves_its_siblings_known(sampler: Sampler, cut: State) -> None:
    """Once the UUID of one instance cannot be read, that one is unknown."""
    uuids(sampler)
    cut.faults.add(Fault.code(NvmlCode.UNKNOWN, UUID, CARD, after=2, times=1))
    sample = cards(sampler)

    assert [0, None, 0] == [used(card) for card in sample[1:4]]
    assert "nvmlDeviceGetUUID: code 999" in sample[2].trouble.text


@pytest.mark.parametrize("function", ["nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount"])
def test_a_card_that_does_not_tell_its_mode_is_unknown(
    sampler: Sampler, cut: State, function: str
) -> None:
    """Whether a card is cut decides what it is, so that nothing is guessed."""
    before = uuids(sampler)
    cut.faults.add(Fault.code(NvmlCode.UNKNOWN, function, CARD))
    sample = cards(sampler)

    assert before == [item.card.uuid for item in sample]
    assert [0, None, None, None, 0] == [used(card) for card in sample]
