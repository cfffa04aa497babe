"""What a sample contains, whatever the child says or does not say."""

import pytest

from agent.model.sample import UNSENSED, CardSensors
from agent.nvml.faults import Code
from agent.nvml.protocol import Ask, Counted, NvmlFailure, Question
from agent.nvml.sampler import SENSE_SECONDS, Sampler
from agent.nvml.settings import SamplerSettings
from gpufence.quantity import GIB
from tests.support.agent.builders import (
    COUNT,
    HANG,
    IN_USE,
    LOST,
    OPEN,
    Script,
    card_memory,
    cut,
    listed,
    look,
    looked,
    processes_of,
)

NOBODY: frozenset[str] = frozenset()


@pytest.fixture
def script() -> Script:
    """A machine of two cards with a process each."""
    made = Script()
    made.answers[COUNT] = Counted(2)
    for index in range(2):
        made.answers[look(index)] = looked(f"GPU-{index}", memory=card_memory(2 * GIB))
        made.answers[processes_of(f"GPU-{index}")] = listed(999.0, IN_USE)
    return made


@pytest.fixture
def sampler(script: Script) -> Sampler:
    return Sampler(SamplerSettings(deadline_seconds=4.0), script.clock, script.start)


def asked_of_cards(asked: list[Question]) -> list[str]:
    """Return whose lists were asked for."""
    return [question.subject for question in asked if question.ask is Ask.LIST]


def after(script: Script, sampler: Sampler, seconds: float = 1.0, *suspects: str) -> list[str]:
    """Take a sample after some time; return whose lists were renewed."""
    script.clock.now += seconds
    return asked_of_cards(script.asked_since(lambda: sampler.sample(frozenset(suspects))))


def test_a_new_card_is_looked_at_in_the_same_sample(sampler: Sampler, script: Script) -> None:
    """More cards than the last time are more questions at once."""
    sampler.sample(NOBODY)
    script.answers |= {COUNT: Counted(3), look(2): looked("GPU-2")}
    script.answers[processes_of("GPU-2")] = listed()

    assert 3 == len(sampler.sample(NOBODY).cards)


def test_a_card_less_is_not_missed(sampler: Sampler, script: Script) -> None:
    """A card that the driver no longer counts is gone."""
    sampler.sample(NOBODY)
    script.answers |= {COUNT: Counted(1), look(1): NvmlFailure(Code.INVALID_ARGUMENT, "handle")}

    assert ["GPU-0"] == [item.card.uuid for item in sampler.sample(NOBODY).cards]


def test_a_card_that_returns_is_listed_at_once(sampler: Sampler, script: Script) -> None:
    """What was listed before a card was lost is not used again."""
    sampler.sample(NOBODY)
    good = script.answers[look(1)]
    script.answers[look(1)] = LOST
    sampler.sample(NOBODY)
    script.answers[look(1)] = good

    assert ["GPU-1"] == after(script, sampler)


def test_without_a_driver_the_cards_of_before_are_unknown(sampler: Sampler, script: Script) -> None:
    """The sample says why, and no card looks idle."""
    sampler.sample(NOBODY)
    script.answers[COUNT] = NvmlFailure(Code.DRIVER_NOT_LOADED, "nvmlDeviceGetCount")
    script.answers[OPEN] = NvmlFailure(Code.DRIVER_NOT_LOADED, "nvmlInit")
    sample = sampler.sample(NOBODY)

    assert ["GPU-0", "GPU-1"] == [item.card.uuid for item in sample.cards]
    assert {(None, None)} == {(item.memory, item.processes) for item in sample.cards}
    assert "the NVIDIA driver is not loaded" in sample.trouble.text
    assert {sample.trouble.text} == {item.trouble.text for item in sample.cards}


def test_a_machine_without_cards_is_no_idle_machine(sampler: Sampler, script: Script) -> None:
    """A driver that counts none is trouble: the devices are kept from us."""
    script.answers[COUNT] = Counted(0)
    sample = sampler.sample(NOBODY)

    assert () == sample.cards
    assert "NVIDIA_VISIBLE_DEVICES=all" in sample.trouble.text


def test_cards_that_all_vanish_are_not_forgotten(sampler: Sampler, script: Script) -> None:
    """From some cards to none at all is a failure, not a change of hardware."""
    sampler.sample(NOBODY)
    script.answers[COUNT] = Counted(0)
    sample = sampler.sample(NOBODY)

    assert [None, None] == [card.memory for card in sample.cards]
    assert "NVIDIA_VISIBLE_DEVICES=all" in sample.trouble.text


def test_a_driver_that_is_slow_from_the_start_is_no_empty_machine(
    sampler: Sampler, script: Script
) -> None:
    """Before the cards are counted, nothing is said about them."""
    script.seconds = 2.1
    sample = sampler.sample(NOBODY)

    assert (0, ()) == (sampler.restarts, sample.cards)
    assert "has not answered yet" in sample.trouble.text


def test_no_children_are_no_restarts(sampler: Sampler, script: Script) -> None:
    """The first child replaces nobody."""
    script.refuse_start = True
    sample = sampler.sample(NOBODY)
    sampler.close()

    assert 0 == sampler.restarts
    assert "free memory or PIDs" in sample.trouble.text


def test_after_its_end_a_sampler_says_so(sampler: Sampler) -> None:
    """A sample that is asked for while the agent stops does no harm."""
    sampler.sample(NOBODY)
    sampler.close()

    assert "the agent is stopping" == sampler.sample(NOBODY).trouble.text


def test_cards_that_nobody_has_cut_are_said(sampler: Sampler, script: Script) -> None:
    """MIG mode without instances leaves nothing to measure."""
    script.answers |= {COUNT: Counted(1), look(0): cut("GPU-0")}
    sample = sampler.sample(NOBODY)

    assert () == sample.cards
    assert "create some with nvidia-smi mig" in sample.trouble.text


def sensors_after(script: Script, sampler: Sampler, seconds: float) -> list[CardSensors]:
    script.clock.now += seconds
    return [card.sensors for card in sampler.sample(NOBODY).cards]


def test_sensors_are_read_by_the_way(sampler: Sampler, script: Script) -> None:
    """No sample waits for temperature and power: an answer that takes time is in the next one."""
    warm = CardSensors(61, 42, 70)
    script.answers[Question(Ask.SENSE, "GPU-0")] = warm
    script.seconds = 0.1
    first = sensors_after(script, sampler, 1.0)

    assert [UNSENSED, UNSENSED] == first
    assert [warm, UNSENSED] == sensors_after(script, sampler, 1.0)


def test_sensors_that_hang_are_unknown_and_no_trouble(sampler: Sampler, script: Script) -> None:
    """A card whose sensors hang the driver goes on being measured, without old figures of them."""
    script.answers[Question(Ask.SENSE, "GPU-0")] = CardSensors(61, 42, 70)
    sampler.sample(NOBODY)
    script.answers[Question(Ask.SENSE, "GPU-0")] = HANG
    for _ in range(4):
        sensors_after(script, sampler, SENSE_SECONDS)
    sample = sampler.sample(NOBODY)

    assert UNSENSED == sample.cards[0].sensors
    assert "" == sample.trouble.text
    assert all(card.memory and card.processes for card in sample.cards)
