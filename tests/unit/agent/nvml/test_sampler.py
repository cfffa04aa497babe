"""
What a sample contains, whatever the child says or does not say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.model.sample import CardSample, ProcessList
from agent.nvml.faults import Code
from agent.nvml.protocol import Ask, Counted, NvmlFailure, Question
from agent.nvml.sampler import Sampler
from agent.nvml.settings import SamplerSettings
from gpufence.quantity import GIB, MIB
from tests.support.agent.nvml import (
    COUNT,
    CRASH,
    HANG,
    IN_USE,
    LOST,
    OPEN,
    Script,
    cut,
    listed,
    look,
    looked,
    memory,
    processes_of,
)

if TYPE_CHECKING:
    from agent.ports import Cards

NOBODY: frozenset[str] = frozenset()


@pytest.fixture
def script() -> Script:
    """
    A machine of two cards with a process each.
    """
    made = Script()
    made.answers[COUNT] = Counted(2)
    for index in range(2):
        made.answers[look(index)] = looked(f"GPU-{index}", memory=memory(2 * GIB))
        made.answers[processes_of(f"GPU-{index}")] = listed(999.0, IN_USE)
    return made


@pytest.fixture
def sampler(script: Script) -> Sampler:
    return Sampler(SamplerSettings(deadline_seconds=4.0), script.clock, script.start)


def asked_of_cards(asked: list[Question]) -> list[str]:
    """
    Return whose lists were asked for.
    """
    return [question.subject for question in asked if question.ask is Ask.LIST]


def after(script: Script, sampler: Sampler, seconds: float = 1.0, *suspects: str) -> list[str]:
    """
    Take a sample after some time; return whose lists were renewed.
    """
    script.clock.now += seconds
    return asked_of_cards(script.asked_since(lambda: sampler.sample(frozenset(suspects))))


def test_a_sample_shows_every_card(sampler: Sampler) -> None:
    """
    Memory and processes of all cards, with the driver and the time it was taken.
    """
    sample = sampler.sample(NOBODY)
    first = sample.cards[0]

    assert (1000.0, "580.95.05", "") == (sample.taken_at, sample.driver, sample.trouble.text)
    assert ["GPU-0", "GPU-1"] == [item.card.uuid for item in sample.cards]
    assert CardSample(first.card, memory(2 * GIB), ProcessList(999.0, (IN_USE,))) == first


def test_a_quiet_card_keeps_its_list(sampler: Sampler, script: Script) -> None:
    """
    A list that is not renewed is the same object as before.
    """
    first = sampler.sample(NOBODY).cards[0].processes

    assert [] == after(script, sampler)
    assert first is sampler.sample(NOBODY).cards[0].processes


def test_a_suspect_is_listed_each_time(sampler: Sampler, script: Script) -> None:
    """
    The judge's suspects are listed whatever their use.
    """
    sampler.sample(NOBODY)

    assert ["GPU-1"] == after(script, sampler, 1.0, "GPU-1")


def test_a_card_whose_use_moves_is_listed(sampler: Sampler, script: Script) -> None:
    """
    More than 64 MiB up or down since the last list calls for a new one.
    """
    sampler.sample(NOBODY)
    script.answers[look(1)] = looked("GPU-1", memory=memory(2 * GIB + 65 * MIB))

    assert ["GPU-1"] == after(script, sampler)
    assert [] == after(script, sampler)


def test_lists_are_renewed_by_age(sampler: Sampler, script: Script) -> None:
    """
    Every ten seconds each card is listed.
    """
    sampler.sample(NOBODY)
    renewed = [bool(after(script, sampler)) for _ in range(20)]

    assert ([False] * 9 + [True]) * 2 == renewed


def test_a_new_card_is_looked_at_in_the_same_sample(sampler: Sampler, script: Script) -> None:
    """
    More cards than the last time are more questions at once.
    """
    sampler.sample(NOBODY)
    script.answers |= {COUNT: Counted(3), look(2): looked("GPU-2")}
    script.answers[processes_of("GPU-2")] = listed()

    assert 3 == len(sampler.sample(NOBODY).cards)


def test_a_card_less_is_not_missed(sampler: Sampler, script: Script) -> None:
    """
    A card that the driver no longer counts is gone.
    """
    sampler.sample(NOBODY)
    script.answers |= {COUNT: Counted(1), look(1): NvmlFailure(Code.INVALID_ARGUMENT, "handle")}

    assert ["GPU-0"] == [item.card.uuid for item in sampler.sample(NOBODY).cards]


def test_a_lost_card_is_unknown(sampler: Sampler, script: Script) -> None:
    """
    Neither memory nor processes of a lost card are known, while the others are read.
    """
    sampler.sample(NOBODY)
    script.answers[look(1)] = LOST
    sample = sampler.sample(NOBODY)
    lost = sample.cards[1]

    assert (None, None) == (lost.memory, lost.processes)
    assert "fallen off the bus" in lost.trouble.text
    assert "" == sample.trouble.text
    assert "" == sample.cards[0].trouble.text


def test_a_card_that_returns_is_listed_at_once(sampler: Sampler, script: Script) -> None:
    """
    What was listed before a card was lost is not used again.
    """
    sampler.sample(NOBODY)
    good = script.answers[look(1)]
    script.answers[look(1)] = LOST
    sampler.sample(NOBODY)
    script.answers[look(1)] = good

    assert ["GPU-1"] == after(script, sampler)


def test_a_list_that_fails_is_unknown(sampler: Sampler, script: Script) -> None:
    """
    Memory is known, processes are not; the next sample asks again.
    """
    script.answers[processes_of("GPU-1")] = NvmlFailure(Code.UNKNOWN, "list")
    card = sampler.sample(NOBODY).cards[1]

    assert (memory(2 * GIB), None) == (card.memory, card.processes)
    assert "code 999" in card.trouble.text
    assert ["GPU-1"] == after(script, sampler)


def test_a_hang_is_reported_with_the_card_it_came_from(sampler: Sampler, script: Script) -> None:
    """
    Cards that had answered are read, those after the hang are not, and all of them come back.
    """
    sampler.sample(NOBODY)
    script.answers[look(1)] = HANG
    sample = sampler.sample(NOBODY)

    assert [memory(2 * GIB), None] == [item.memory for item in sample.cards]
    assert "asked for the memory of card 1" in sample.cards[1].trouble.text
    assert 1 == sampler.restarts


def test_a_card_that_keeps_hanging_is_left_out(sampler: Sampler, script: Script) -> None:
    """
    From the third sample on it costs no time and no child.
    """
    sampler.sample(NOBODY)
    script.answers[look(1)] = HANG
    sampler.sample(NOBODY)
    sampler.sample(NOBODY)
    before = script.clock()
    sample = sampler.sample(NOBODY)

    assert before == script.clock()
    assert "left alone for 60 s" in sample.cards[1].trouble.text
    assert 2 == sampler.restarts


def test_a_crash_in_a_list_leaves_the_memory_known(sampler: Sampler, script: Script) -> None:
    """
    A child that dies of a list has told the memory before.
    """
    script.answers[processes_of("GPU-0")] = CRASH
    sample = sampler.sample(NOBODY)

    assert [memory(2 * GIB)] * 2 == [item.memory for item in sample.cards]
    assert [None, None] == [item.processes for item in sample.cards]
    assert "Segmentation fault" in sample.cards[0].trouble.text


def test_without_a_driver_the_cards_of_before_are_unknown(sampler: Sampler, script: Script) -> None:
    """
    The sample says why, and no card looks idle.
    """
    sampler.sample(NOBODY)
    script.answers[COUNT] = NvmlFailure(Code.DRIVER_NOT_LOADED, "nvmlDeviceGetCount")
    script.answers[OPEN] = NvmlFailure(Code.DRIVER_NOT_LOADED, "nvmlInit")
    sample = sampler.sample(NOBODY)

    assert ["GPU-0", "GPU-1"] == [item.card.uuid for item in sample.cards]
    assert {(None, None)} == {(item.memory, item.processes) for item in sample.cards}
    assert "the NVIDIA driver is not loaded" in sample.trouble.text
    assert {sample.trouble.text} == {item.trouble.text for item in sample.cards}


def test_a_new_driver_is_picked_up(sampler: Sampler, script: Script) -> None:
    """
    After a mismatch the next sample is whole again, lists included.
    """
    sampler.sample(NOBODY)
    good = script.answers[COUNT]
    script.answers[COUNT] = NvmlFailure(Code.LIB_RM_VERSION_MISMATCH, "nvmlDeviceGetCount")
    broken = sampler.sample(NOBODY)
    script.answers[COUNT] = good

    assert "different versions" in broken.trouble.text
    assert ["GPU-0", "GPU-1"] == after(script, sampler)
    assert "" == sampler.sample(NOBODY).trouble.text


def test_a_machine_without_cards_is_no_idle_machine(sampler: Sampler, script: Script) -> None:
    """
    A driver that counts none is trouble: the devices are kept from us.
    """
    script.answers[COUNT] = Counted(0)
    sample = sampler.sample(NOBODY)

    assert () == sample.cards
    assert "NVIDIA_VISIBLE_DEVICES=all" in sample.trouble.text


def test_cards_that_all_vanish_are_not_forgotten(sampler: Sampler, script: Script) -> None:
    """
    From some cards to none at all is a failure, not a change of hardware.
    """
    sampler.sample(NOBODY)
    script.answers[COUNT] = Counted(0)
    sample = sampler.sample(NOBODY)

    assert [None, None] == [card.memory for card in sample.cards]
    assert "NVIDIA_VISIBLE_DEVICES=all" in sample.trouble.text


def test_a_driver_that_is_slow_from_the_start_is_no_empty_machine(
    sampler: Sampler, script: Script
) -> None:
    """
    Before the cards are counted, nothing is said about them.
    """
    script.seconds = 2.1
    sample = sampler.sample(NOBODY)

    assert (0, ()) == (sampler.restarts, sample.cards)
    assert "has not answered yet" in sample.trouble.text


def test_cards_that_nobody_has_cut_are_said(sampler: Sampler, script: Script) -> None:
    """
    MIG mode without instances leaves nothing to measure.
    """
    script.answers |= {COUNT: Counted(1), look(0): cut("GPU-0")}
    sample = sampler.sample(NOBODY)

    assert () == sample.cards
    assert "create some with nvidia-smi mig" in sample.trouble.text


def test_it_is_what_the_loop_needs(sampler: Sampler) -> None:
    """
    A sampler is the agent's view of its cards.
    """
    cards: Cards = sampler

    assert 2 == len(cards.sample(NOBODY).cards)


def test_cards_that_all_fail_are_trouble_of_the_sample(sampler: Sampler, script: Script) -> None:
    """
    If no card's memory can be read, the sample says why.
    """
    script.answers |= {look(0): LOST, look(1): LOST}
    sample = sampler.sample(NOBODY)

    assert () == sample.cards
    assert sample.trouble.text.startswith("card 0: the card has fallen off the bus")
    assert 2 == len(sampler.unidentified)


def test_a_slow_driver_is_told_from_a_lost_card(sampler: Sampler, script: Script) -> None:
    """
    What was not answered in time is unknown for now, without harm to the child.
    """
    sampler.sample(NOBODY)
    script.seconds = 1.5
    sample = sampler.sample(NOBODY)

    assert [memory(2 * GIB), None] == [item.memory for item in sample.cards]
    assert "has not answered yet" in sample.cards[1].trouble.text
    assert 0 == sampler.restarts


def test_no_children_are_no_restarts(sampler: Sampler, script: Script) -> None:
    """
    The first child replaces nobody.
    """
    script.refuse_start = True
    sample = sampler.sample(NOBODY)
    sampler.close()

    assert 0 == sampler.restarts
    assert "free memory or PIDs" in sample.trouble.text


def test_after_its_end_a_sampler_says_so(sampler: Sampler) -> None:
    """
    A sample that is asked for while the agent stops does no harm.
    """
    sampler.sample(NOBODY)
    sampler.close()

    assert "the agent is stopping" == sampler.sample(NOBODY).trouble.text
