"""What is said of pods: records of how they ended, the condition of their memory, and Events."""

from dataclasses import dataclass, field

import pytest

from gpufence import names
from gpufence.cards import Card
from gpufence.errors import SettingsError
from gpufence.event_text import (
    MOST_NAME,
    MOST_SAID,
    MOST_TEXT,
    Anchor,
    event_text,
    explain_command,
    named_card,
    shortened,
    with_link,
    would_do,
)
from gpufence.memory_condition import (
    MOST_CARDS,
    STATUSES,
    HeldOnCard,
    MemoryCondition,
    MemoryReason,
    read_memory_condition,
    write_message,
)
from gpufence.nodes import kept_configmap
from gpufence.quantity import GIB, MIB
from gpufence.records import (
    EVICTED,
    MOST_BYTES,
    MOST_MOMENTS,
    MOST_RECORDS,
    Moment,
    Neighbour,
    NodeRecords,
    Record,
    Threshold,
    bounded,
    read_records,
    record_object,
    together,
    write_records,
)
from gpufence.settings import HELP_URL, read_settings
from gpufence.shape import Object


def record(number: int = 0, namespace: str = "team-a", moments: int = 0) -> Record:
    """Build a record; the number is its time."""
    course = tuple(Moment(600 - 5 * age, 81_559, 81_559, 81_559) for age in range(moments))
    return Record(EVICTED, f"2026-01-02T00:{number:05}", "uid", namespace, "a", course=course)


def test_what_is_written_is_read() -> None:
    """Every field comes back, and what is unknown stays unknown."""
    whole = record()._replace(
        owner="Deployment/web",
        controller="ReplicaSet/web-7",
        card="GPU-0",
        index=3,
        model="Tesla T4",
        total_bytes=15 * GIB,
        peak_bytes=4 * GIB,
        limit_bytes=3 * GIB,
        shortage=True,
        request_bytes=2 * GIB,
        over_seconds=12.5,
        owed_bytes=GIB,
        neighbours=(Neighbour(None, GIB),),
        thresholds=(Threshold("limit", 3 * GIB), Threshold("evict", 4 * GIB, 7.0)),
        course=(Moment(3, None, 3072, None), Moment(0, 4096, 3072, 1)),
        given_bytes=GIB,
        certain=True,
    )
    known = NodeRecords("n1", "2026-01-01T00:00:00Z", (whole, record()))

    assert known == read_records(write_records(known))


def test_two_agents_records_are_each_there_once() -> None:
    """What both know stands once, in the order of time."""
    assert (record(1), record(2), record(3)) == together(
        [record(3), record(1)], [record(2), record(1)]
    )


def test_no_more_is_kept_than_fits() -> None:
    """However many there are, an object has room for them, and the newest are there."""
    crowd = tuple(record(number, moments=MOST_MOMENTS) for number in range(2 * MOST_RECORDS))
    kept = bounded(NodeRecords("n1", records=crowd))

    assert MOST_BYTES >= len(write_records(kept)) > MOST_BYTES / 2
    assert crowd[-1] == kept.records[-1]
    assert MOST_RECORDS == len(bounded(NodeRecords("n1", records=_small(300))).records)


def test_one_namespace_pushes_out_no_other() -> None:
    """A tenant that is evicted all day leaves the only record of another one alone."""
    crowd = (record(0, "team-b"), *_small(300))

    assert "team-b" == bounded(NodeRecords("n1", records=crowd)).records[0].namespace


def _small(count: int) -> tuple[Record, ...]:
    return tuple(record(number + 1) for number in range(count))


AT = "2026-01-02T03:04:05Z"
CARDS = (HeldOnCard(0, GIB, 3 * GIB), HeldOnCard(3, None, 2 * GIB))


def condition(message: str, **more: object) -> Object:
    said = {"reason": "OverLimit", "message": message, "lastProbeTime": AT}
    return {"type": names.GPU_MEMORY, **said, **more}


@pytest.mark.parametrize("cards", [CARDS, CARDS[:1], (HeldOnCard(None, 0, GIB),)])
@pytest.mark.parametrize("reason", MemoryReason)
def test_what_is_written_can_be_read(reason: MemoryReason, cards: tuple[HeldOnCard, ...]) -> None:
    """Every reason has a status and a sentence, from which the amounts come back."""
    said = condition(write_message(reason, cards), reason=str(reason))

    assert MemoryCondition(reason, cards, AT) == read_memory_condition([{"type": "Ready"}, said])
    assert STATUSES[reason] in {"True", "False", "Unknown"}


def test_amounts_are_whole_mebibytes() -> None:
    """What is held is rounded up, and a limit down."""
    held = (HeldOnCard(0, GIB + 1, GIB + MIB - 1),)

    assert "holds 1025 of 1024 MiB on card 0" == write_message(MemoryReason.WITHIN, held)


def test_of_many_cards_the_first_are_named() -> None:
    """A message has a bound."""
    many = tuple(HeldOnCard(index, GIB, GIB) for index in range(MOST_CARDS + 3))
    message = write_message(MemoryReason.WITHIN, many)
    read = read_memory_condition([condition(message)])

    assert message.endswith("card 15, and on 3 more")
    assert read is not None
    assert many[:MOST_CARDS] == read.cards


@pytest.mark.parametrize(
    "message", ["", "hello", "9" * 30 + " of 1 MiB on card 0", "1 of 2 MiB on card ٣"]
)
def test_what_is_no_sentence_of_ours_has_no_amounts(message: str) -> None:
    """It may be one of a newer agent; its reason is kept."""
    assert MemoryCondition("OverLimit", (), AT) == read_memory_condition([condition(message)])


def test_a_pod_may_say_nothing() -> None:
    """Then there is none."""
    assert None is read_memory_condition([{"type": "Ready"}])


PAGE = "https://wiki.example.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    page: str = field(default="", metadata=HELP_URL)


def test_a_long_name_keeps_both_ends() -> None:
    """Names are cut in the middle, and what would steer a terminal is a question mark."""
    assert "greedy-7d9c-abcde" == shortened("greedy-7d9c-abcde")
    assert "aaaaaaaaa...cccccccc" == shortened("a" * 60 + "b" + "c" * 60)
    assert MOST_NAME == len(shortened("x" * 999))
    assert "a?b" == shortened("a\nb")


def test_a_card_is_named_by_index_and_model() -> None:
    """Neither UUID nor maker takes a place in the sentence."""
    card = Card("GPU-329de2de", 1, "NVIDIA A100-SXM4-80GB", 80 * GIB)

    assert "card 1 (A100-SXM4-80GB)" == named_card(card)


@pytest.mark.parametrize(
    ("enough", "card", "text"),
    [
        (4 * GIB, None, "About 4096Mi would do (gpufence.io/memory or its request)."),
        (4 * GIB - MIB + 1, 4 * GIB, "About 4096Mi would do (gpufence.io/memory or its request)."),
        (5 * GIB, 4 * GIB, "More than this card has: let it use less."),
    ],
)
def test_the_value_that_would_do(enough: int, card: int | None, text: str) -> None:
    """It is rounded up, and said as a remedy only where a card can give it."""
    assert text == would_do(enough, card)


def test_the_command_names_the_pod_in_full_or_not_at_all() -> None:
    """A cut name is never part of what is typed."""
    assert "kubectl gpufence explain greedy" == explain_command("greedy")
    assert explain_command("p" * 64).startswith("kubectl gpufence explain POD (POD: ppp")


def test_what_finds_no_place_is_left_out() -> None:
    """First and last sentence stay; of the others one is cut, unless little of it would be left."""
    long = "x" * MOST_SAID

    assert "One. Two. Type." == event_text("One.", "", "Two.", last="Type.")
    assert MOST_SAID == len(event_text("One.", long, "Two.", last="Type."))
    assert event_text("One.", long, last="Type.", most=80).endswith("xxx... Type.")
    assert "One. Type." == event_text("One.", long, last="Type.", most=70)
    assert "One." == event_text("One.")
    assert MOST_SAID == len(event_text(long + "y", last="Type."))
    assert event_text(long + "y", last="Type.").endswith("xxx... Type.")


def test_a_link_is_never_cut() -> None:
    """A text ends with the link to its part of the page, whatever stands before it."""
    assert "Said." == with_link("Said.", "", Anchor.EVICTED)
    assert "Said." == with_link("Said.", PAGE, None)
    assert f"Said. {PAGE}#evicted" == with_link("Said.", PAGE, Anchor.EVICTED)
    assert MOST_TEXT == len(with_link("\n" * 999, PAGE, Anchor.CAPPED))
    assert with_link("\n" * 999, PAGE, Anchor.CAPPED).endswith(f"??... {PAGE}#capped")


@pytest.mark.parametrize(
    "text",
    [
        "wiki",
        "ftp://wiki.example.com",
        "https://wiki.example.com/gpu#evicted",
        "https://me:secret@wiki.example.com",
        "https://wiki.example.com/a b",
        "https://wiki.example.com/" + "x" * 100,
    ],
)
def test_a_page_that_no_link_can_lead_to(text: str) -> None:
    """Links end with a part of the page, are short, and repeat no password."""
    with pytest.raises(
        SettingsError, match=r"GPUFENCE_HELP_URL: .* is no address of a page"
    ) as caught:
        read_settings(Linking, {"GPUFENCE_HELP_URL": text})

    assert "secret" not in str(caught.value)


def test_a_page_that_users_are_led_to() -> None:
    """Where no page is named there is no link."""
    page = "https://wiki.example.com/pages?id=1"

    assert (page, "") == (
        read_settings(Linking, {"GPUFENCE_HELP_URL": page}).page,
        read_settings(Linking, {}).page,
    )


def test_a_record_for_programs_has_every_field() -> None:
    """What is left out in the object of a node, since it is usual, is said to programs."""
    written = record_object(record()._replace(request_bytes=GIB))

    assert len(Record._fields) == len(written)
    assert EVICTED in written.values()


def test_what_is_kept_of_a_node_goes_with_it() -> None:
    """The Node owns the object where its UID is known; without one nothing does."""
    owned = kept_configmap("kept", "label", {}, "", ("gpu-1", "u1"))["metadata"]
    alone = kept_configmap("kept", "label", {}, "7")["metadata"]

    owner = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1", "uid": "u1"}
    assert isinstance(owned, dict)
    assert isinstance(alone, dict)
    assert [owner] == owned["ownerReferences"]
    assert {"name": "kept", "labels": owned["labels"], "resourceVersion": "7"} == alone
