"""Cards and drivers that fail, are slow, never answer or take the process down."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

from agent.model.sample import CardSample
from agent.nvml.sampler import Sampler
from simulator.nvml.faults import Fault, NvmlCode
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
from tests.support.observing import PATIENCE_SECONDS, wait_until

NAME = "nvmlDeviceGetName"


@pytest.mark.parametrize(
    "code",
    [
        NvmlCode.NO_PERMISSION,
        NvmlCode.GPU_IS_LOST,
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


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (NvmlCode.DRIVER_NOT_LOADED, "is not loaded"),
        (NvmlCode.UNKNOWN, "delete the agent's pod"),
    ],
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


def test_a_name_that_nobody_can_read_is_unknown(sampler: Sampler, machine: State) -> None:
    """Bytes that are no text cost the name alone, and not even that if it was known before."""
    fault = machine.faults.add(Fault(FaultAction.GARBLE, NAME))
    first = cards(sampler)[0]
    machine.faults.remove(fault)
    second = cards(sampler)[0]
    machine.faults.add(Fault(FaultAction.GARBLE, NAME))

    assert ("unknown", 0) == (first.card.model, used(first))
    assert "Tesla T4" == second.card.model == cards(sampler)[0].card.model


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


@pytest.mark.parametrize("found", [True, False], ids=["elsewhere", "nowhere"])
def test_a_missing_library_is_said(start: Start, tmp_path: Path, *, found: bool) -> None:
    """Without a library there is nothing to see, wherever it was looked for, and it says so."""
    path = tmp_path / "libnvidia-ml.so.1" if found else None
    sample = start(library_path=path).sample(NOBODY)

    assert () == sample.cards
    assert "libnvidia-ml.so.1 is not there" in sample.trouble.text


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


def test_a_crash_is_survived(sampler: Sampler, machine: State) -> None:
    """A driver that ends its caller by SIGSEGV costs one list, not the agent, nor a descriptor."""
    put(machine, "0", 100)
    cards(sampler)
    descriptors = pipes()
    machine.faults.add(Fault(FaultAction.CRASH, COMPUTE, 0, times=1))
    broken = cards(sampler, machine.cards[0].uuid)[0]
    well = cards(sampler)[0]

    wait_until(lambda: pipes() <= descriptors, "the old child's descriptors stay open")
    assert (100, None) == (used(broken), held(broken))
    assert "Segmentation fault" in broken.trouble.text
    assert ({0: 100}, 1) == (held(well), sampler.restarts)


def pipes() -> int:
    """Count this process's pipes: sockets come and go with what other tests left running."""
    count = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder's own, and those that others close
            count += str(each.readlink()).startswith("pipe:")
    return count


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
