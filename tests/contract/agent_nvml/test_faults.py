"""Cards that fail, drivers that go and come, and words that nobody can read."""

from pathlib import Path

import pytest

from agent.nvml.sampler import Sampler
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
    cards,
    held,
    put,
    recovered,
    used,
)

NAME = "nvmlDeviceGetName"


@pytest.mark.parametrize(
    "code",
    [
        NvmlCode.NO_PERMISSION,
        NvmlCode.GPU_IS_LOST,
        NvmlCode.RESET_REQUIRED,
        NvmlCode.OPERATING_SYSTEM,
        NvmlCode.TIMEOUT,
        NvmlCode.NOT_READY,
        NvmlCode.UNKNOWN,
    ],
    ids=lambda code: code.name,
)
def test_a_card_that_fails_is_unknown_until_it_returns(
    sampler: Sampler, machine: State, code: NvmlCode
) -> None:
    """Neither memory nor processes, with a reason; the others are read; no child is replaced."""
    put(machine, "1", 100)
    cards(sampler)
    machine.faults.add(Fault.code(code, card=1))
    sample = sampler.sample(NOBODY)
    machine.faults.clear()
    again = cards(sampler)[1]

    assert [0, None, 0] == [used(card) for card in sample.cards]
    assert [{}, None, {}] == [held(card) for card in sample.cards]
    assert f"code {int(code)}); " in sample.cards[1].trouble.text
    assert ("", 0) == (sample.trouble.text, sampler.restarts)
    assert (100, {0: 100}, "") == (used(again), held(again), again.trouble.text)


def test_a_lost_card_is_known_by_uuid_when_it_returns(sampler: Sampler, machine: State) -> None:
    """A card that comes back under another index is the same card."""
    put(machine, "0", 100)
    cards(sampler)
    machine.faults.add(Fault.code(NvmlCode.GPU_IS_LOST, card=0))
    lost = cards(sampler)[0]
    machine.faults.clear()
    machine.reorder([1, 2, 0])
    back = cards(sampler)[2]

    assert (machine.cards[0].uuid, None) == (lost.card.uuid, lost.memory)
    assert (machine.cards[0].uuid, {0: 100}) == (back.card.uuid, held(back))


def test_memory_alone_may_fail(sampler: Sampler, machine: State) -> None:
    """A card that does not tell its memory still lists its processes."""
    put(machine, "0", 100)
    cards(sampler)
    machine.faults.add(Fault.code(NvmlCode.UNKNOWN, MEMORY, 0))
    card = cards(sampler)[0]

    assert (None, {0: 100}) == (used(card), held(card))
    assert "code 999" in card.trouble.text


@pytest.mark.parametrize("code", [NvmlCode.NOT_SUPPORTED, NvmlCode.ARGUMENT_VERSION_MISMATCH])
def test_the_old_memory_info_stands_in_for_the_new(
    sampler: Sampler, machine: State, code: NvmlCode
) -> None:
    """Where version 2 is refused, version 1 tells all but what is reserved."""
    machine.faults.add(Fault.code(code, f"{MEMORY}_v2"))
    memory = cards(sampler)[0].memory

    assert memory is not None
    assert (None, 430 << 20) == (memory.reserved_bytes, memory.used_bytes)


def test_a_card_lost_from_the_start_is_named(sampler: Sampler, machine: State) -> None:
    """A card that never said who it is is in no sample, but not silently so."""
    machine.faults.add(Fault.code(NvmlCode.GPU_IS_LOST, HANDLE, card=1))
    sample = sampler.sample(NOBODY)

    assert (2, 1) == (len(sample.cards), len(sample.unidentified))
    assert sample.unidentified[0].text.startswith("card 1: the card has fallen off the bus")
    assert sample.unidentified == sampler.unidentified


def test_if_every_card_fails_the_sample_says_why(sampler: Sampler, machine: State) -> None:
    """With no card to be read the whole sample is in trouble."""
    cards(sampler)
    machine.faults.add(Fault.code(NvmlCode.UNKNOWN, HANDLE))
    sample = sampler.sample(NOBODY)

    assert [None] * 3 == [card.memory for card in sample.cards]
    assert "delete the agent's pod" in sample.trouble.text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (NvmlCode.DRIVER_NOT_LOADED, "is not loaded"),
        (NvmlCode.NO_PERMISSION, "give the agent all devices"),
        (NvmlCode.OPERATING_SYSTEM, "delete the agent's pod"),
        (NvmlCode.LIB_RM_VERSION_MISMATCH, "different versions"),
        (NvmlCode.UNKNOWN, "delete the agent's pod"),
    ],
    ids=["no driver", "no permission", "blocked", "mismatch", "unknown"],
)
def test_nvml_that_cannot_be_opened_is_tried_again(
    sampler: Sampler, machine: State, code: NvmlCode, words: str
) -> None:
    """The sample says what is wrong and what to do; once it is cured, all is well by itself."""
    machine.faults.add(Fault.code(code, "nvmlInit"))
    broken = sampler.sample(NOBODY)
    machine.faults.clear()
    well = recovered(sampler)

    assert ((), words) == (
        broken.cards,
        words if words in broken.trouble.text else broken.trouble.text,
    )
    assert ("", 3) == (well.trouble.text, len(well.cards))


def test_a_driver_upgrade_is_picked_up_by_a_new_child(sampler: Sampler, machine: State) -> None:
    """One sample is lost, with its reason; the next one is the new driver's."""
    put(machine, "0", 100)
    cards(sampler)
    machine.upgrade_driver("590.44.01")
    broken = sampler.sample(NOBODY)
    well = recovered(sampler)

    assert "driver and library are of different versions" in broken.trouble.text
    assert [(None, None)] * 3 == [(card.memory, card.processes) for card in broken.cards]
    assert ("590.44.01", "", 1) == (well.driver, well.trouble.text, sampler.restarts)
    assert {0: 100} == held(well.cards[0])


def test_a_missing_library_is_said(start: Start, tmp_path: Path) -> None:
    """Without a library there is nothing to see, and it says so."""
    sample = start(library_path=tmp_path / "libnvidia-ml.so.1").sample(NOBODY)

    assert () == sample.cards
    assert "libnvidia-ml.so.1 is not there" in sample.trouble.text


def test_no_library_anywhere_is_said(start: Start) -> None:
    """The same where the dynamic linker finds none."""
    sample = start(library_path=None).sample(NOBODY)

    assert "libnvidia-ml.so.1 is not there" in sample.trouble.text


def test_a_name_that_nobody_can_read_is_unknown(sampler: Sampler, machine: State) -> None:
    """Bytes that are no text cost the name alone, and not even that if it was known before."""
    fault = machine.faults.add(Fault(FaultAction.GARBLE, NAME))
    first = cards(sampler)[0]
    machine.faults.remove(fault)
    second = cards(sampler)[0]
    machine.faults.add(Fault(FaultAction.GARBLE, NAME))

    assert ("unknown", 0) == (first.card.model, used(first))
    assert "Tesla T4" == second.card.model == cards(sampler)[0].card.model


def test_a_uuid_that_nobody_can_read_is_no_card(sampler: Sampler, machine: State) -> None:
    """Without its UUID a card is not known; those that were known before are missed."""
    cards(sampler)
    machine.faults.add(Fault(FaultAction.GARBLE, UUID, card=2))
    card = cards(sampler)[2]

    assert (None, None) == (card.memory, card.processes)
    assert "not UTF-8" in card.trouble.text


def test_a_driver_without_a_version_is_unknown(sampler: Sampler, machine: State) -> None:
    """What only serves to be shown stops nothing."""
    machine.faults.add(Fault.code(NvmlCode.UNKNOWN, "nvmlSystemGetDriverVersion"))
    machine.faults.add(Fault.code(NvmlCode.UNKNOWN, "nvmlDeviceGetCudaComputeCapability"))
    sample = sampler.sample(NOBODY)

    assert ("unknown", None) == (sample.driver, sample.cards[0].card.compute_capability)
    assert [0, 0, 0] == [used(card) for card in sample.cards]


def test_a_card_that_is_gone_between_two_calls_is_unknown(sampler: Sampler, machine: State) -> None:
    """A card that is lost after its memory was read has no list."""
    put(machine, "0", 100)
    machine.faults.add(Fault.code(NvmlCode.NOT_FOUND, "nvmlDeviceGetHandleByUUID", 0))
    card = cards(sampler)[0]

    assert (100, None) == (used(card), held(card))
    assert "does not know this card any more" in card.trouble.text
    assert 0 == machine.calls(COMPUTE) - 2
