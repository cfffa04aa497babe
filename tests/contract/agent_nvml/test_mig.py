"""Cards that are cut into MIG instances, and cut anew."""

import pytest

from agent.nvml.sampler import Sampler
from gpufence.cards import Card, Instance
from gpufence.quantity import MIB
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import MEMORY, UUID, cards, held, put, used

CARD = 1  # the A100-40


@pytest.fixture
def cut(machine: State) -> State:
    """Return the machine with its A100 cut into a large and two small instances."""
    machine.cards[CARD].cut("3g.20gb", "1g.5gb", "1g.5gb")
    return machine


def uuids(sampler: Sampler) -> list[str]:
    return [item.card.uuid for item in cards(sampler)]


def test_each_instance_is_a_card(sampler: Sampler, cut: State) -> None:
    """Instances come in their card's place, with their own memory and their card's index."""
    parent = cut.cards[CARD]
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


def test_each_instance_has_its_own_processes(sampler: Sampler, cut: State) -> None:
    """What a process holds of one instance does not show on its sibling."""
    put(cut, f"{CARD}:1", 500)
    sample = cards(sampler)

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


def test_leaving_the_mode_brings_the_card_back(sampler: Sampler, cut: State) -> None:
    """Without MIG mode there is one card again."""
    uuids(sampler)
    cut.cards[CARD].leave_mig()

    assert [card.uuid for card in cut.cards] == uuids(sampler)


def test_a_card_that_nobody_has_cut_is_no_card(sampler: Sampler, machine: State) -> None:
    """In MIG mode without instances there is nothing to hold memory of."""
    machine.cards[CARD].cut()

    assert [machine.cards[0].uuid, machine.cards[2].uuid] == uuids(sampler)


def test_instances_are_lost_with_their_card(sampler: Sampler, cut: State) -> None:
    """A card that falls off the bus leaves its instances unknown, not gone."""
    before = uuids(sampler)
    cut.faults.add(Fault.code(NvmlCode.GPU_IS_LOST, card=CARD))
    sample = cards(sampler)

    assert before == [item.card.uuid for item in sample]
    assert [0, None, None, None, 0] == [used(card) for card in sample]


def test_an_instance_that_fails_leaves_its_siblings_known(sampler: Sampler, cut: State) -> None:
    """Once the UUID of one instance cannot be read, that one is unknown."""
    uuids(sampler)
    cut.faults.add(Fault.code(NvmlCode.UNKNOWN, UUID, CARD, after=2, times=1))
    sample = cards(sampler)

    assert [0, None, 0] == [used(card) for card in sample[1:4]]
    assert "nvmlDeviceGetUUID: code 999" in sample[2].trouble.text


def test_an_instance_whose_memory_fails_is_unknown(sampler: Sampler, cut: State) -> None:
    """An instance that does not tell its memory keeps its size."""
    uuids(sampler)
    cut.faults.add(Fault.code(NvmlCode.UNKNOWN, MEMORY, CARD))
    first = cards(sampler)[1]

    assert (None, 20096 * MIB) == (used(first), first.card.memory_bytes)


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
