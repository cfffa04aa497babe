"""What is read of cards, when they are listed, and what a failure of NVML means."""

import pytest

from agent.model.sample import NO_TROUBLE, CardMemory, GpuProcess, ProcessList, Trouble, TroubleCode
from agent.nvml.cards import (
    UNCHARGED_BYTES,
    CardReadings,
    ListAttempt,
    ListPace,
    card_readings,
    list_attempt,
    list_is_due,
)
from agent.nvml.faults import Code, ends_session, lasts, trouble_of
from agent.nvml.protocol import UNNAMED, Looked, NvmlFailure
from gpufence.cards import Card, Instance
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LOST, TOTAL, card_memory, cut, listed, looked, seen

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
    (reading,) = card_readings({3: looked("GPU-3", memory=card_memory(7))}, {}).cards

    assert Card("GPU-3", 3, "Tesla T4", TOTAL, (7, 5)) == reading.card
    assert card_memory(7) == reading.memory
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


def test_a_card_that_shares_the_machines_memory_is_told_apart() -> None:
    """A card with no memory of its own is named as one on which no pod is fenced."""
    shared = NvmlFailure(Code.NOT_SUPPORTED, "nvmlDeviceGetMemoryInfo")
    (found,) = card_readings({0: looked(memory=shared)}, {}).unidentified

    assert TroubleCode.UNIFIED == found.code
    assert "has no memory of its own but shares the machine's" in found.text


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


ENDING = {1, 9, 12, 18}
LASTING = {3, 4, 13}


@pytest.mark.parametrize("code", [*range(1, 31), 999])
def test_few_codes_end_the_session(code: int) -> None:
    """Only what concerns driver or library as a whole calls for a new process."""
    assert (code in ENDING) == ends_session(NvmlFailure(code, "call"))
    assert (code in LASTING) == lasts(NvmlFailure(code, "call"))


def test_what_is_no_code_of_nvml_concerns_one_card() -> None:
    """A surprise within a question neither ends the session nor forbids to ask again."""
    failure = NvmlFailure(None, "nvmlDeviceGetUUID", "text that is not UTF-8")

    assert not ends_session(failure)
    assert not lasts(failure)


@pytest.mark.parametrize("code", list(Code))
def test_every_known_code_has_a_reason_and_a_remedy(code: Code) -> None:
    """The sentence names the call and the code, and what to do after a semicolon."""
    said = trouble_of(NvmlFailure(code, "nvmlCall")).text

    assert f"(nvmlCall: code {int(code)}); " in said
    assert "\n" not in said
    assert not said.startswith("the driver fails") or code is Code.ARGUMENT_VERSION_MISMATCH


def test_other_codes_are_told_by_number() -> None:
    """A code that nobody has heard of is shown as it is."""
    said = trouble_of(NvmlFailure(4242, "nvmlCall")).text

    assert said.startswith("the driver fails (nvmlCall: code 4242)")


def test_a_failure_without_a_code_tells_its_text() -> None:
    """What went wrong outside NVML is quoted."""
    said = trouble_of(NvmlFailure(None, "nvmlDeviceGetUUID", "text that is not UTF-8")).text

    assert said.startswith('nvmlDeviceGetUUID: "text that is not UTF-8"; ')


PACE = ListPace(interval_seconds=1.0, list_seconds=10.0, moved_bytes=64 * MIB)
NOW = 100.0
SLOW = Trouble("too slow")


def last(used: int | None = 0, age: float = 1.0, *, again: bool = False) -> ListAttempt:
    return ListAttempt(NOW - age, used, again=again)


@pytest.mark.parametrize(
    ("used_before", "used", "age", "due"),
    [
        (GIB, GIB, 1.0, False),
        (GIB, GIB + 64 * MIB, 1.0, False),
        (GIB, GIB + 64 * MIB + 1, 1.0, True),
        (GIB, GIB - 64 * MIB - 1, 1.0, True),
        (GIB, GIB, 9.4, False),
        (GIB, GIB, 9.5, True),
        (None, GIB, 1.0, True),
        (GIB, None, 1.0, True),
        (None, None, 1.0, False),
        (None, None, 10.0, True),
    ],
)
def test_a_list_is_due_by_movement_or_age(
    used_before: int | None, used: int | None, age: float, *, due: bool
) -> None:
    """More than 64 MiB up or down since the last list, or the last list ten seconds ago."""
    assert due == list_is_due(last(used_before, age), used, NOW, PACE)


def test_a_first_list_is_due() -> None:
    """A card that was never listed is listed at once."""
    assert list_is_due(None, 0, NOW, PACE)


def test_a_failed_list_is_due_again() -> None:
    """An attempt that may succeed when repeated is repeated."""
    assert list_is_due(last(again=True), 0, NOW, PACE)


def test_the_lists_are_merged() -> None:
    """The largest figure of a PID counts, whichever list shows it."""
    answer = listed(
        99.0, GpuProcess(1, GIB), graphics=(GpuProcess(1, 2 * GIB), GpuProcess(2, None))
    )
    expected = ProcessList(99.0, (GpuProcess(1, 2 * GIB), GpuProcess(2, None)))

    assert ListAttempt(NOW, GIB, expected) == list_attempt(answer, card_memory(GIB), NOW, None)


def test_mps_clients_mark_the_card() -> None:
    """Anybody in the list of MPS clients makes the card one whose clients cannot be told apart."""
    listing = list_attempt(listed(99.0, mps=(GpuProcess(1, GIB),)), card_memory(GIB), NOW, None)

    assert listing.mps
    assert ProcessList(99.0, (GpuProcess(1, GIB),)) == listing.processes


def test_a_missing_answer_is_tried_again() -> None:
    """No answer leaves the list unknown, with its reason."""
    expected = ListAttempt(NOW, None, trouble=SLOW, again=True)

    assert expected == list_attempt(SLOW, None, NOW, None)


@pytest.mark.parametrize(
    ("code", "again"), [(Code.UNKNOWN, True), (Code.INSUFFICIENT_SIZE, True), (4, False)]
)
def test_a_failure_leaves_the_list_unknown(code: int, *, again: bool) -> None:
    """A failed list is no empty list; what lasts is not asked for each second."""
    listing = list_attempt(NvmlFailure(code, "list"), card_memory(), NOW, None)

    assert None is listing.processes
    assert again == listing.again
    assert f"code {int(code)}" in listing.trouble.text


@pytest.mark.parametrize("shown", [(), (GpuProcess(7, 0),)], ids=["nobody", "zero"])
@pytest.mark.parametrize("reserved", [0, 512 * MIB, None])
def test_memory_charged_to_nobody_is_no_idle_card(
    shown: tuple[GpuProcess, ...], reserved: int | None
) -> None:
    """A card in use whose list charges nobody has an unknown list."""
    used = UNCHARGED_BYTES + (reserved or 0) + 1
    listing = list_attempt(listed(99.0, *shown), card_memory(used, reserved), NOW, None)

    assert None is listing.processes
    assert listing.again
    assert "hostPID" in listing.trouble.text


def test_a_lasting_doubt_is_not_renewed_each_second() -> None:
    """The second list that charges nobody waits for its turn."""
    first = list_attempt(listed(), card_memory(9 * GIB), NOW, None)
    second = list_attempt(listed(), card_memory(9 * GIB), NOW, first)

    assert first.again
    assert not second.again


@pytest.mark.parametrize(
    ("shown", "used"),
    [((), UNCHARGED_BYTES), ((GpuProcess(7, 1),), 9 * GIB), ((GpuProcess(7, None),), 9 * GIB)],
    ids=["idle", "charged", "unknown"],
)
def test_other_lists_are_believed(shown: tuple[GpuProcess, ...], used: int) -> None:
    """What nobody is charged with may be there as long as somebody is, or as it is little."""
    listing = list_attempt(listed(99.0, *shown), card_memory(used), NOW, None)

    assert ProcessList(99.0, shown) == listing.processes


def test_without_memory_the_list_is_believed() -> None:
    """A card that does not tell its use may still list its processes."""
    listing = list_attempt(listed(99.0), None, NOW, None)

    assert ProcessList(99.0, ()) == listing.processes
