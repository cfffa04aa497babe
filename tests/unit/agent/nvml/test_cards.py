"""What is read of cards, when they are listed, and what a failure of NVML means."""

import pytest

from agent.model.sample import CardMemory, GpuProcess, ProcessList, Trouble, TroubleCode
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


GAP = NvmlFailure(15, "nvmlDeviceGetUUID")
GAP_WORDS = "nvmlDeviceGetUUID: code 15"
A, B = looked("GPU-0"), looked("GPU-1")


@pytest.mark.parametrize(
    ("looks", "before", "expected"),
    [
        ({0: cut("GPU-0")}, (), {}),
        ({0: A, 1: WHY}, (A, B), {"GPU-0": "", "GPU-1": WHY.text}),
        (
            {0: WHY},
            (cut("GPU-0", "MIG-1", "MIG-2"),),
            {"MIG-1": WHY.text, "MIG-2": WHY.text},
        ),
        ({0: A}, (A, B), {"GPU-0": ""}),
        ({0: B, 1: WHY}, (A, B), {"GPU-0": WHY.text, "GPU-1": ""}),
        (
            {0: cut("GPU-0", "MIG-2"), 1: WHY},
            (cut("GPU-0", "MIG-1"), looked("GPU-9")),
            {"MIG-2": "", "GPU-9": WHY.text},
        ),
        ({0: cut("GPU-0", "MIG-1"), 1: WHY}, (A,), {"MIG-1": ""}),
        ({0: A, 1: WHY}, (cut("GPU-0", "MIG-1"),), {"GPU-0": ""}),
        (
            {0: cut("GPU-0", "MIG-1", gaps=(GAP,))},
            (cut("GPU-0", "MIG-1", "MIG-2"),),
            {"MIG-1": "", "MIG-2": GAP_WORDS},
        ),
        (
            {0: cut("GPU-0", "MIG-3", "MIG-2", gaps=(GAP,))},
            (cut("GPU-0", "MIG-1", "MIG-2", "MIG-3"),),
            {"MIG-1": GAP_WORDS, "MIG-2": "", "MIG-3": ""},
        ),
    ],
    ids=[
        *("not cut into any instance", "a lost card stays", "with all its instances"),
        *("one that no index names is gone", "indices that change lose none"),
        *("a new cut ends the old instances", "a card that is cut is no card any more"),
        *("leaving MIG ends the instances", "an instance that fails is missed"),
        "and keeps its place",
    ],
)
def test_which_cards_there_are(
    looks: dict[int, Looked | Trouble], before: tuple[Looked, ...], expected: dict[str, str]
) -> None:
    """
    What was known and is not named now is lost with the reason there is, unless its card, or all
    indices, show that it is gone.
    """
    found = card_readings(looks, known(*before)).cards

    assert list(expected) == [reading.card.uuid for reading in found]
    for reading in found:
        text = expected[reading.card.uuid]
        assert text in reading.trouble.text
        assert (not text) is reading.there is bool(reading.memory)


def test_the_last_trouble_of_an_unknown_index_is_said() -> None:
    """A lost card that stands at an index that works gets the first reason there is."""
    found = card_readings({0: B, 7: WHY}, known(A, B))

    assert WHY == next(item.trouble for item in found.cards if item.card.uuid == "GPU-0")
    assert (WHY.of_card(7),) == found.unidentified


SHARED = NvmlFailure(Code.NOT_SUPPORTED, "nvmlDeviceGetMemoryInfo")


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (WHY, TroubleCode.OTHER, "card 0: the card has fallen off the bus"),
        (looked(memory=LOST), TroubleCode.OTHER, "card 0: the card has fallen off the bus"),
        (
            looked(memory=SHARED),
            TroubleCode.UNIFIED,
            "no memory of its own but shares the machine's",
        ),
        (looked(memory=CardMemory(0, 0, 0)), TroubleCode.OTHER, "it says that it has no memory"),
    ],
    ids=["never known", "no size", "the machine's memory", "no memory"],
)
def test_what_is_no_card_is_named(answer: Looked | Trouble, code: TroubleCode, words: str) -> None:
    """An index that never said which card it is, or how large, is in no sample, and told of."""
    found = card_readings({0: answer, 1: B}, {})

    assert ["GPU-1"] == uuids(found)
    (trouble,) = found.unidentified
    assert code == trouble.code
    assert words in trouble.text


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


def test_an_instance_whose_memory_fails_keeps_its_size() -> None:
    """What is known of an instance survives a failure of its memory alone."""
    before = known(cut("GPU-0", "MIG-1"))
    broken = Looked(seen("GPU-0"), (seen("MIG-1", memory=LOST, profile="1g.5gb"),))
    (reading,) = card_readings({0: broken}, before).cards

    assert reading.card == before["MIG-1"]
    assert None is reading.memory


ENDING = {1, 9, 12, 18}
LASTING = {3, 4, 13}


@pytest.mark.parametrize("code", [*range(1, 31), 999])
def test_few_codes_end_the_session(code: int) -> None:
    """Only what concerns driver or library as a whole calls for a new process."""
    assert (code in ENDING) == ends_session(NvmlFailure(code, "call"))
    assert (code in LASTING) == lasts(NvmlFailure(code, "call"))


@pytest.mark.parametrize("code", list(Code))
def test_every_known_code_has_a_reason_and_a_remedy(code: Code) -> None:
    """The sentence names the call and the code, and what to do after a semicolon."""
    said = trouble_of(NvmlFailure(code, "nvmlCall")).text

    assert f"(nvmlCall: code {int(code)}); " in said
    assert "\n" not in said
    assert not said.startswith("the driver fails") or code is Code.ARGUMENT_VERSION_MISMATCH


@pytest.mark.parametrize(
    ("failure", "begins"),
    [
        (NvmlFailure(4242, "nvmlCall"), "the driver fails (nvmlCall: code 4242)"),
        (NvmlFailure(None, "nvmlCall", "no UTF-8"), 'nvmlCall: "no UTF-8"; '),
    ],
)
def test_other_failures_are_told_as_they_are(failure: NvmlFailure, begins: str) -> None:
    """By their number or their text; none ends the session or forbids to ask again."""
    assert trouble_of(failure).text.startswith(begins)
    assert not ends_session(failure)
    assert not lasts(failure)


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


def test_a_first_list_and_a_failed_one_are_due() -> None:
    """A card that was never listed is listed at once; an attempt that may succeed is repeated."""
    assert list_is_due(None, 0, NOW, PACE)
    assert list_is_due(last(again=True), 0, NOW, PACE)


def test_the_lists_are_merged() -> None:
    """The largest figure of a PID counts, whichever list shows it."""
    answer = listed(
        99.0, GpuProcess(1, GIB), graphics=(GpuProcess(1, 2 * GIB), GpuProcess(2, None))
    )
    expected = ProcessList(99.0, (GpuProcess(1, 2 * GIB), GpuProcess(2, None)))

    assert ListAttempt(NOW, GIB, expected) == list_attempt(answer, card_memory(GIB), NOW, None)


def test_what_a_list_may_be() -> None:
    """A client of MPS marks the card; no answer leaves the list unknown, with its reason."""
    listing = list_attempt(listed(99.0, mps=(GpuProcess(1, GIB),)), card_memory(GIB), NOW, None)

    assert listing.mps
    assert ProcessList(99.0, (GpuProcess(1, GIB),)) == listing.processes
    assert ListAttempt(NOW, None, trouble=SLOW, again=True) == list_attempt(SLOW, None, NOW, None)


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
    ("shown", "memory"),
    [
        ((), card_memory(UNCHARGED_BYTES)),
        ((GpuProcess(7, 1),), card_memory(9 * GIB)),
        ((GpuProcess(7, None),), card_memory(9 * GIB)),
        ((), None),
    ],
    ids=["idle", "charged", "unknown", "without memory"],
)
def test_other_lists_are_believed(shown: tuple[GpuProcess, ...], memory: CardMemory | None) -> None:
    """What no process is charged with may be there as long as some is, or as it is little."""
    listing = list_attempt(listed(99.0, *shown), memory, NOW, None)

    assert ProcessList(99.0, shown) == listing.processes
