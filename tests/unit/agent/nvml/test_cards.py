"""Which cards there are, by what each index says."""

from agent.model.sample import NO_TROUBLE, CardMemory, Trouble
from agent.nvml.cards import CardReadings, card_readings
from agent.nvml.protocol import UNNAMED, Looked, NvmlFailure
from gpufence.cards import Card, Instance
from tests.support.agent.nvml import LOST, TOTAL, cut, looked, memory, seen

WHY = Trouble("the card has fallen off the bus")


def known(*looks: Looked) -> dict[str, Card]:
    """Return the cards that a complete sample has shown."""
    return {
        reading.card.uuid: reading.card
        for reading in card_readings(dict(enumerate(looks)), {}).cards
    }


def uuids(found: CardReadings) -> list[str]:
    return [reading.card.uuid for reading in found.cards]


def test_a_card_is_described() -> None:
    """A card has its index, model, memory and compute capability."""
    (reading,) = card_readings({3: looked("GPU-3", memory=memory(7))}, {}).cards

    assert Card("GPU-3", 3, "Tesla T4", TOTAL, (7, 5)) == reading.card
    assert memory(7) == reading.memory
    assert reading.there


def test_instances_stand_for_their_card() -> None:
    """A card in MIG mode is its instances, each with its parent, profile and the parent's index."""
    found = card_readings({0: looked(), 1: cut("GPU-1", "MIG-1", "MIG-2")}, {})

    assert ["GPU-0", "MIG-1", "MIG-2"] == uuids(found)
    assert [None, Instance("GPU-1", "1g.5gb")] == [item.card.mig for item in found.cards[:2]]
    assert 1 == found.cards[2].card.index


def test_a_card_that_nobody_has_cut_offers_nothing() -> None:
    """MIG mode without instances is a card with no memory to give."""
    assert CardReadings(()) == card_readings({0: cut("GPU-0")}, {})


def test_a_lost_card_is_still_a_card() -> None:
    """A card known before whose index fails stays, with the reason, beside those that answer."""
    before = known(looked("GPU-0"), looked("GPU-1"))
    found = card_readings({0: looked("GPU-0"), 1: WHY}, before)
    lost = found.cards[1]

    assert ("GPU-1", None, False, WHY) == (
        lost.card.uuid,
        lost.memory,
        lost.there,
        lost.trouble,
    )
    assert () == found.unidentified


def test_a_lost_card_takes_its_instances_along() -> None:
    """The instances of a card that does not answer are unknown, not gone."""
    found = card_readings({0: WHY}, known(cut("GPU-0", "MIG-1", "MIG-2")))

    assert ["MIG-1", "MIG-2"] == uuids(found)
    assert {WHY} == {reading.trouble for reading in found.cards}


def test_a_card_that_was_never_known_is_told_apart() -> None:
    """An index that has never answered is no card, but is named."""
    found = card_readings({0: looked(), 1: WHY}, {})

    assert ["GPU-0"] == uuids(found)
    assert (WHY.of_card(1),) == found.unidentified


def test_a_card_without_a_size_is_told_apart() -> None:
    """A card whose memory was never readable cannot be described, since its size is unknown."""
    found = card_readings({0: looked(memory=LOST)}, {})

    assert () == found.cards
    assert found.unidentified[0].text.startswith("card 0: the card has fallen off the bus")


def test_a_card_without_memory_is_told_apart() -> None:
    """A size of zero is no size, and nobody could have a limit there."""
    found = card_readings({0: looked(memory=CardMemory(0, 0, 0))}, {})

    assert (
        CardReadings(
            (), (Trouble("card 0: it says that it has no memory; look at it with nvidia-smi"),)
        )
        == found
    )


def test_what_is_known_fills_the_gaps() -> None:
    """A card that does not tell its memory, name or capability now keeps those of before."""
    before = known(looked())
    half = looked(memory=LOST, model=UNNAMED, capability=None)
    (reading,) = card_readings({0: half}, before).cards

    assert reading.card is before["GPU-0"]
    assert None is reading.memory
    assert reading.there
    assert "fallen off the bus" in reading.trouble.text


def test_a_card_that_changes_is_described_anew() -> None:
    """Another index or size is another description of the same card."""
    (reading,) = card_readings({5: looked()}, known(looked())).cards

    assert ("GPU-0", 5) == (reading.card.uuid, reading.card.index)


def test_a_card_that_is_taken_away_is_forgotten() -> None:
    """Where every index answers, a card that none of them names is gone."""
    assert ["GPU-0"] == uuids(card_readings({0: looked()}, known(looked(), looked("GPU-1"))))


def test_changed_indices_lose_nobody() -> None:
    """A lost card whose old index is another card's now has the reason of an index that fails."""
    before = known(looked("GPU-0"), looked("GPU-1"))
    found = card_readings({0: looked("GPU-1"), 1: WHY}, before)

    assert {"GPU-0": WHY, "GPU-1": NO_TROUBLE} == {
        item.card.uuid: item.trouble for item in found.cards
    }


def test_the_last_trouble_of_an_unknown_index_is_said() -> None:
    """A lost card that stands at an index that works gets the first reason there is."""
    before = known(looked("GPU-0"), looked("GPU-1"))
    found = card_readings({0: looked("GPU-1"), 7: WHY}, before)

    assert WHY == next(item.trouble for item in found.cards if item.card.uuid == "GPU-0")
    assert (WHY.of_card(7),) == found.unidentified


def test_a_new_cut_ends_the_old_instances() -> None:
    """Instances that their card no longer has are gone, even while another card is lost."""
    before = known(cut("GPU-0", "MIG-1"), looked("GPU-9"))
    found = card_readings({0: cut("GPU-0", "MIG-2"), 1: WHY}, before)

    assert ["MIG-2", "GPU-9"] == uuids(found)


def test_a_card_that_is_cut_is_no_card_any_more() -> None:
    """A whole card that turns into instances is gone, even while another card is lost."""
    found = card_readings({0: cut("GPU-0", "MIG-1"), 1: WHY}, known(looked("GPU-0")))

    assert ["MIG-1"] == uuids(found)


def test_leaving_mig_ends_the_instances() -> None:
    """The instances of a card that is whole again are gone, even while another card is lost."""
    found = card_readings({0: looked("GPU-0"), 1: WHY}, known(cut("GPU-0", "MIG-1")))

    assert ["GPU-0"] == uuids(found)


def test_an_instance_that_does_not_say_who_it_is_is_missed() -> None:
    """While an instance of a card fails, those known before and not named are unknown."""
    gap = NvmlFailure(15, "nvmlDeviceGetUUID")
    before = known(cut("GPU-0", "MIG-1", "MIG-2"))
    found = card_readings({0: cut("GPU-0", "MIG-1", gaps=(gap,))}, before)

    assert [True, False] == [reading.there for reading in found.cards]
    assert "nvmlDeviceGetUUID: code 15" in found.cards[1].trouble.text


def test_an_instance_whose_memory_fails_keeps_its_size() -> None:
    """What is known of an instance survives a failure of its memory alone."""
    before = known(cut("GPU-0", "MIG-1"))
    broken = Looked(seen("GPU-0"), (seen("MIG-1", memory=LOST, profile="1g.5gb"),))
    (reading,) = card_readings({0: broken}, before).cards

    assert reading.card == before["MIG-1"]
    assert None is reading.memory


def test_a_lost_instance_keeps_its_place() -> None:
    """The order of the cards does not change with what can be read of them."""
    gap = NvmlFailure(15, "nvmlDeviceGetUUID")
    before = known(cut("GPU-0", "MIG-1", "MIG-2", "MIG-3"))
    found = card_readings({0: cut("GPU-0", "MIG-3", "MIG-2", gaps=(gap,))}, before)

    assert ["MIG-1", "MIG-2", "MIG-3"] == uuids(found)
