"""What a look at the cards tells about the node."""

from dataclasses import replace

import pytest

from agent.commands.checks import check_cards
from agent.model.sample import CardSample, Sample, Trouble, TroubleCode
from agent.nvml.settings import SamplerSettings
from gpufence.findings import Finding, Level
from tests.support.agent.builders import CARDS, card_sample, occupant
from tests.support.agent.node import Processes

LIVING = Processes({7: occupant(7, None, None)})


class OneLook:
    """Cards that show the same sample whenever they are looked at."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def sample(self, suspects: frozenset[str]) -> Sample:
        del suspects
        return self._sample

    def close(self) -> None: ...


def checked(*cards: CardSample, trouble: str = "") -> list[Finding]:
    sample = Sample(0.0, cards, "580", Trouble(trouble))
    return check_cards(OneLook(sample), SamplerSettings(), LIVING)


@pytest.mark.parametrize(
    ("card", "expected", "text"),
    [
        (card_sample(0, {7: 1}), Level.OK, "Tesla T4, 1 process"),
        (card_sample(0, {}), Level.OK, "Tesla T4, 0 processes"),
        (card_sample(0, {8: 1}), Level.WRONG, "none of which is alive"),
        (card_sample(0, {7: None}), Level.LOOK, "does not say how much"),
        (card_sample(0, {7: 1}, mps={7}), Level.LOOK, "MPS"),
        (card_sample(0), Level.WRONG, "cannot be listed"),
        (
            replace(card_sample(0, {7: 1}), trouble=Trouble("it is lost")),
            Level.WRONG,
            "it is lost",
        ),
    ],
)
def test_each_card_is_told_apart(card: CardSample, expected: Level, text: str) -> None:
    """A card is fine, or there is a reason why nobody is evicted from it."""
    driver, found = checked(card)

    assert (Level.OK, expected) == (driver.level, found.level)
    assert text in found.text
    assert (expected is Level.OK) == (not found.remedy)


def test_without_nvml_its_trouble_is_all() -> None:
    """A driver that cannot be asked is told once, whatever cards there were."""
    found = checked(CardSample(CARDS[0], None, None), trouble="no library")

    assert [("NVML", Level.WRONG, "no library")] == [
        (item.subject, item.level, item.text) for item in found
    ]


def test_a_card_without_memory_of_its_own_is_told() -> None:
    """A card on which no pod is fenced is worth a look, and no fault of the driver's."""
    unfenced = Trouble("it has no memory of its own", TroubleCode.UNIFIED).of_card(0)
    sample = Sample(0.0, (), "580", unidentified=(unfenced,))
    driver, found = check_cards(OneLook(sample), SamplerSettings(), LIVING)

    assert (Level.OK, Level.LOOK) == (driver.level, found.level)
    assert "card 0: it has no memory of its own" == found.text
