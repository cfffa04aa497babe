"""Process lists that grow, lie or come in another layout."""

import pytest

from agent.nvml.sampler import Sampler
from simulator.nvml.build import VARIANTS, Variant
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction, Lists
from simulator.nvml.state import State
from tests.contract.agent_nvml.machine import COMPUTE, GRAPHICS, MPS, Start, cards, held, put, used


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


def test_growth_between_calls_is_followed(sampler: Sampler, machine: State) -> None:
    """Lists that outgrow the room they were given are asked for again, in the same sample."""
    put(machine, "0", 100)
    machine.faults.add(Fault(FaultAction.PAD, COMPUTE, 0, argument=150))

    assert 151 == len(held(cards(sampler)[0]) or ())


def test_a_full_card_is_listed_whole(sampler: Sampler, machine: State) -> None:
    """A thousand processes are a thousand processes."""
    machine.faults.add(Fault(FaultAction.PAD, COMPUTE, 2, argument=1000))

    assert 1000 == len(held(cards(sampler)[2]) or ())


@pytest.mark.parametrize("times", [1, 3])
def test_a_short_storm_of_growth_is_sat_out(sampler: Sampler, machine: State, times: int) -> None:
    """A driver that wants more room a few times in a row gets it."""
    put(machine, "0", 100)
    machine.faults.add(Fault.code(NvmlCode.INSUFFICIENT_SIZE, COMPUTE, 0, times=times))

    assert {0: 100} == held(cards(sampler)[0])


def test_an_endless_storm_leaves_the_list_unknown(sampler: Sampler, machine: State) -> None:
    """A list that never fits is unknown; once it fits, the next sample has it."""
    put(machine, "0", 100)
    machine.faults.add(Fault.code(NvmlCode.INSUFFICIENT_SIZE, COMPUTE, 0))
    card = cards(sampler)[0]
    machine.faults.clear()

    assert (None, 100) == (held(card), used(card))
    assert "multiply faster" in card.trouble.text
    assert {0: 100} == held(cards(sampler)[0])


def test_duplicates_count_once(sampler: Sampler, machine: State) -> None:
    """A PID listed twice holds its memory once."""
    put(machine, "0", 100, 200)
    machine.faults.add(Fault(FaultAction.DUPLICATE, COMPUTE, argument=2))

    assert {0: 100, 1: 200} == held(cards(sampler)[0])


def test_memory_that_is_not_available_is_none(sampler: Sampler, machine: State) -> None:
    """N/A is neither zero nor huge, all the way."""
    put(machine, "0", 100)
    machine.faults.add(Fault(FaultAction.NOT_AVAILABLE, COMPUTE))

    assert {0: None} == held(cards(sampler)[0])


def test_unknown_in_one_list_is_unknown_in_all(sampler: Sampler, machine: State) -> None:
    """A process whose memory one of its lists does not tell is not taken at the other's word."""
    put(machine, "0", 100, lists=Lists.COMPUTE | Lists.GRAPHICS)
    machine.faults.add(Fault(FaultAction.NOT_AVAILABLE, GRAPHICS))

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


def test_an_idle_card_is_idle(sampler: Sampler, machine: State) -> None:
    """Nobody listed and little in use is nobody, not a doubt."""
    machine.cards[0].extra = 300 * 2**20
    card = cards(sampler)[0]

    assert ({}, 300, "") == (held(card), used(card), card.trouble.text)


@pytest.mark.parametrize("function", [COMPUTE, GRAPHICS, MPS])
@pytest.mark.parametrize("code", [NvmlCode.NO_PERMISSION, NvmlCode.UNKNOWN, NvmlCode.GPU_IS_LOST])
def test_one_list_that_fails_makes_all_unknown(
    sampler: Sampler, machine: State, function: str, code: NvmlCode
) -> None:
    """Half of the processes would look like all of them."""
    put(machine, "0", 100)
    machine.faults.add(Fault.code(code, function, 0))
    card = cards(sampler)[0]

    assert (None, 100) == (held(card), used(card))
    assert f"code {int(code)}" in card.trouble.text


@pytest.mark.parametrize("function", [GRAPHICS, MPS])
def test_a_list_that_a_card_does_not_have_is_empty(
    sampler: Sampler, machine: State, function: str
) -> None:
    """Cards that know no graphics, or no MPS, have no such processes."""
    put(machine, "0", 100)
    machine.faults.add(Fault.code(NvmlCode.NOT_SUPPORTED, function, 0))
    card = cards(sampler)[0]

    assert ({0: 100}, "") == (held(card), card.trouble.text)


def test_a_card_that_cannot_list_is_asked_rarely(sampler: Sampler, machine: State) -> None:
    """What is not supported is not asked for in each sample."""
    machine.faults.add(Fault.code(NvmlCode.NOT_SUPPORTED, COMPUTE))
    card = cards(sampler)[0]
    before = machine.calls(COMPUTE)
    cards(sampler)

    assert None is held(card)
    assert "use a card or a driver that reports" in card.trouble.text
    assert before == machine.calls(COMPUTE)
