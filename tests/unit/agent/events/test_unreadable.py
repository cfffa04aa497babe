"""Cards that cannot be read, and what the Node is told of them."""

from dataclasses import replace

from agent.events.notices import unreadable
from agent.events.sentences import card_unavailable, cards_unidentified, nvml_unavailable
from agent.model.sample import CardSample, Sample, Trouble, TroubleCode
from gpufence import names
from tests.support.agent.builders import CARDS, card_sample, memory

FINE = Sample(0.0, (card_sample(0, {}), card_sample(1, {})))


def messages(sample: Sample, *, seconds: float = 20.0) -> list[str]:
    """Return what is told of a sample that has been the same for so long."""
    since, early = unreadable({}, sample, 100.0, "n1", 15.0)
    assert () == early
    _, found = unreadable(since, sample, 100.0 + seconds, "n1", 15.0)
    assert {names.NVML_UNAVAILABLE, names.UNFENCED} >= {item.reason for item in found}
    return [item.message for item in found]


def test_nothing_is_told_of_cards_that_are_well() -> None:
    """Readable cards are no news."""
    assert [] == messages(FINE)


def test_a_lost_driver_is_told_once_for_all_cards() -> None:
    """The trouble of all cards is one sentence."""
    blind = tuple(replace(item, memory=None, processes=None) for item in FINE.cards)
    trouble = Trouble("driver not loaded")

    expected = nvml_unavailable("n1", "driver not loaded", 20.0).message
    assert [expected] == messages(Sample(0.0, blind, trouble=trouble))


def test_one_lost_card_is_told_by_name() -> None:
    """A card that alone cannot be read is named with its own reason."""
    lost = CardSample(CARDS[1], None, None, trouble=Trouble("it fell off the bus"))

    expected = card_unavailable("n1", CARDS[1], "it fell off the bus", 20.0).message
    assert [expected] == messages(Sample(0.0, (FINE.cards[0], lost)))


def test_a_card_without_a_reason_is_told_too() -> None:
    """A card whose list is missing without a word gets one."""
    quiet = CardSample(CARDS[0], memory(), None)
    (message,) = messages(Sample(0.0, (quiet,)))

    assert "it does not say how much memory is used" in message


def test_cards_that_never_said_who_they_are_are_told() -> None:
    """Cards without a UUID are in no sample, so the Node says that they are missing."""
    unidentified = (Trouble("index 3: no access"),)

    expected = cards_unidentified("n1", "index 3: no access", 20.0).message
    assert [expected] == messages(replace(FINE, unidentified=unidentified))


def test_cards_without_memory_of_their_own_are_told() -> None:
    """What cannot be fenced is told of by itself, and is no card that nobody can read."""
    unfenced = Trouble("card 0: it has no memory of its own", TroubleCode.UNIFIED)
    sample = replace(FINE, unidentified=(Trouble("index 3: no access"), unfenced))

    expected = cards_unidentified("n1", "index 3: no access", 20.0).message
    assert [expected, unfenced.text] == messages(sample)


def test_what_is_over_is_forgotten() -> None:
    """A card that could be read in between begins anew."""
    lost = Sample(0.0, (CardSample(CARDS[0], None, None),))
    since, _ = unreadable({}, lost, 0.0, "n1", 15.0)
    since, _ = unreadable(since, FINE, 10.0, "n1", 15.0)
    since, found = unreadable(since, lost, 20.0, "n1", 15.0)

    assert () == found
    assert {"GPU-0": 20.0} == since
