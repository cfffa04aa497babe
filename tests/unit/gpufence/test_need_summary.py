"""What agents remember of a model's need: written, read, and the target for it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.need import (
    CardNeed,
    NeedDay,
    NeedKey,
    NodeNeed,
    OwnerNeed,
    bounded,
    need_configmap,
    read_need,
    write_bounded,
    write_need,
)
from gpufence.need.codec import MOST_BYTES, MOST_DAYS, MOST_OWNERS
from gpufence.quantity import GIB, MIB
from gpufence.share import ShareTerms, allowance
from gpufence.target import LimitTarget, MostHeld, TargetTerms, limit_for, target_for

KEY = NeedKey("vision", "Deployment", "classifier", "server", "Tesla T4")
FULL = NeedDay(
    day="2026-11-19",
    peak_bytes=6 * GIB,
    pods=3,
    processes=2,
    held_seconds=86_400.0,
    capped=True,
    told_bytes=4 * GIB,
    limit_bytes=6 * GIB,
    evicted_bytes=7 * GIB,
    evicted_limit_bytes=6 * GIB,
    evictions=1,
    out_of_memory_limit_bytes=5 * GIB,
    driver_peak=True,
    process_bytes=5 * GIB,
    started=2,
    shares=2,
    levels=((4 * GIB, 80_000.0), (6 * GIB, 6_400.0)),
)


def day(number: int) -> str:
    return f"2026-11-{number:02}"


def owner(name: str, *days: NeedDay) -> OwnerNeed:
    return OwnerNeed(KEY._replace(name=name), days)


def days_of(need: NodeNeed) -> dict[str, list[str]]:
    return {item.key.name: [each.day for each in item.days] for item in need.owners}


def test_a_need_is_one_line_of_json_that_leaves_out_what_goes_without_saying() -> None:
    """A plain day is its date, its peak and how long memory was held."""
    plain = NeedDay("2026-11-19", 6 * GIB, held_seconds=3600.4)
    need = NodeNeed(
        "gpu-1", (OwnerNeed(KEY, (plain,)),), (CardNeed("Tesla T4", 15 * GIB, 512 * MIB),)
    )

    assert (
        '{"v":1,"node":"gpu-1","owners":[{"namespace":"vision","kind":"Deployment",'
        '"name":"classifier","container":"server","card":"Tesla T4","days":[{"day":"2026-11-19",'
        '"peak":"6144Mi","held":3600}]}],"cards":[{"model":"Tesla T4","memory":"15360Mi",'
        '"reserve":"512Mi"}]}'
    ) == write_need(need)


def test_all_of_a_day_reads_back() -> None:
    """Every field of a day survives the way to whoever reads it."""
    need = NodeNeed("gpu-1", (OwnerNeed(KEY, (FULL,)),))

    assert need == read_need(write_need(need))
    assert len(FULL) == len(json.loads(write_need(need))["owners"][0]["days"][0])


def test_days_are_read_in_their_order() -> None:
    """Whoever wrote them, the oldest day comes first."""
    text = write_need(NodeNeed("n", (owner("a", NeedDay(day(2), MIB), NeedDay(day(1), MIB)),)))

    assert {"a": [day(1), day(2)]} == days_of(read_need(text))


def test_what_a_newer_agent_adds_is_passed_over() -> None:
    """Unknown fields are no fault."""
    written: dict[str, Any] = json.loads(write_need(NodeNeed("n", (OwnerNeed(KEY, (FULL,)),))))
    written["owners"][0]["days"][0]["temperature"] = 60

    assert NodeNeed("n", (OwnerNeed(KEY, (FULL,)),)) == read_need(json.dumps(written))


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("day", "tomorrow", 'need.owners[0].days[0].day: "tomorrow" is no day'),
        ("day", "2026-11-31", 'need.owners[0].days[0].day: "2026-11-31" is no day'),
        ("day", "0000-00-00", 'need.owners[0].days[0].day: "0000-00-00" is no day'),
        ("day", None, 'need.owners[0].days[0].day: "" is no day'),
        ("peak", "much", 'need.owners[0].days[0].peak: "much" is not a Kubernetes quantity'),
        ("pods", -1, 'need.owners[0].days[0].pods: "-1" is not a whole number'),
        ("capped", "yes", 'need.owners[0].days[0].capped: "yes" is neither true nor false'),
        ("held", -1, 'need.owners[0].days[0].held: "-1" is no number of seconds'),
        ("at", {"x": 1}, 'need.owners[0].days[0].at: "x" is not a Kubernetes quantity'),
        ("at", {"1Gi": -1}, 'need.owners[0].days[0].at.1Gi: "-1" is no number of seconds'),
        (
            "at",
            {f"{amount}Mi": 1 for amount in range(65)},
            'need.owners[0].days[0].at: "65 levels" are too many',
        ),
    ],
)
def test_what_is_not_as_promised_is_named(field: str, value: object, expected: str) -> None:
    """A wrong field is named with its place and its value."""
    written: dict[str, Any] = json.loads(write_need(NodeNeed("n", (OwnerNeed(KEY, (FULL,)),))))
    written["owners"][0]["days"][0][field] = value

    with pytest.raises(InvalidError, match="^" + expected.replace("[", r"\[")):
        read_need(json.dumps(written))


def test_another_version_is_never_guessed_at() -> None:
    """What a newer agent writes in another way is not read."""
    with pytest.raises(UnknownVersionError):
        read_need('{"v":2}')


@pytest.mark.parametrize(("today", "expected"), [(day(2), 2), (day(1), 3), ("1970-01-01", 3)])
def test_a_clock_that_is_wrong_takes_nothing_away(today: str, expected: int) -> None:
    """Days that have not begun go, unless they are most of them."""
    need = NodeNeed("n", (owner("a", *(NeedDay(day(number), MIB) for number in (1, 2, 3))),))

    assert expected == len(days_of(bounded(need, today))["a"])


def test_the_newest_days_are_kept() -> None:
    """Of fifteen days the oldest goes, and with it an owner who was there on no other."""
    days = [NeedDay(day(number), MIB) for number in range(1, MOST_DAYS + 2)]
    need = NodeNeed("n", (owner("gone", days[0]), owner("stays", *days), owner("empty")))

    assert {"stays": [item.day for item in days[1:]]} == days_of(bounded(need, day(20)))


def test_a_day_to_come_is_forgotten() -> None:
    """A clock that was ahead for a while does not push real days out."""
    need = NodeNeed("n", (owner("a", NeedDay(day(3), MIB), NeedDay("2038-01-19", MIB)),))

    assert {"a": [day(3)]} == days_of(bounded(need, day(4)))


def test_who_has_been_away_for_longest_is_forgotten_first() -> None:
    """More owners than are kept lose those that were there last a long time ago."""
    owners = [owner(f"o{number:03}", NeedDay(day(2), MIB)) for number in range(MOST_OWNERS)]
    need = NodeNeed("n", (owner("a-old-one", NeedDay(day(1), MIB)), *owners))

    assert [item.key.name for item in owners] == list(days_of(bounded(need, day(2))))


def test_as_many_owners_as_are_kept_fit_into_one_object() -> None:
    """512 owners of fourteen usual days are kept whole."""
    days = [
        NeedDay(
            day(number),
            peak_bytes=6 * GIB,
            pods=12,
            held_seconds=86_400,
            told_bytes=4300 * MIB,
            limit_bytes=6 * GIB,
            levels=((4 * GIB, 80_000), (6 * GIB, 6_400)),
        )
        for number in range(1, MOST_DAYS + 1)
    ]
    need = NodeNeed("n", tuple(owner(f"o{number:03}", *days) for number in range(MOST_OWNERS)))

    assert need == bounded(need, day(14))
    assert write_need(need) == write_bounded(need, day(14))
    assert MOST_BYTES >= len(write_need(need))


def test_long_names_of_one_namespace_push_out_no_others_days() -> None:
    """The oldest day goes of the namespace that takes the most, until all fits."""
    usual = [NeedDay(day(number), 6 * GIB) for number in range(1, MOST_DAYS + 1)]
    full = [FULL._replace(day=day(number)) for number in range(1, MOST_DAYS + 1)]
    greedy = KEY._replace(namespace="greedy", kind="K" * 500, container="c" * 63)
    crowd = [
        OwnerNeed(greedy._replace(name=f"{n:03}" + "n" * 250), tuple(full)) for n in range(400)
    ]
    kept = bounded(
        NodeNeed("n", (*crowd, *(owner(f"o{n:02}", *usual) for n in range(100)))), day(14)
    )
    theirs = [item for item in kept.owners if item.key.namespace == "greedy"]

    assert MOST_BYTES >= len(write_need(kept)) > MOST_BYTES * 9 / 10
    assert [MOST_DAYS] * 100 == [
        len(item.days) for item in kept.owners if item.key.namespace == KEY.namespace
    ]
    assert {day(14)} == {item.last_day for item in theirs}


def test_what_one_owner_writes_alone_is_bounded() -> None:
    """A single day that is longer than the object is not kept: nothing of it could be read."""
    long = OwnerNeed(KEY._replace(namespace="greedy", kind="K" * MOST_BYTES), (FULL,))

    assert ["o"] == list(days_of(bounded(NodeNeed("n", (long, owner("o", FULL))), day(19))))


def test_what_does_not_fit_loses_its_oldest_days() -> None:
    """Days on which everything happened that can happen make room at the old end."""
    days = [FULL._replace(day=day(number)) for number in range(1, MOST_DAYS + 1)]
    need = NodeNeed("n", tuple(owner(f"o{number:03}", *days) for number in range(MOST_OWNERS)))
    kept = bounded(need, day(14))

    assert MOST_BYTES >= len(write_need(kept)) > MOST_BYTES * 4 / 5
    assert MOST_OWNERS == len(kept.owners)
    assert {day(14)} == {item.last_day for item in kept.owners}


def test_no_owner_is_no_trouble() -> None:
    """A node on which nothing has happened yet remembers nothing."""
    assert NodeNeed("n") == bounded(NodeNeed("n"), day(1))
    assert "" == owner("a").last_day


@pytest.mark.parametrize(
    ("node", "expected"),
    [("gpu-1", "gpufence-need-gpu-1"), ("n" * 239, "gpufence-need-" + "n" * 239)],
)
def test_the_object_is_called_after_its_node(node: str, expected: str) -> None:
    """A policy can tell from the name whose it is."""
    assert expected == need_configmap(node)


def test_a_name_that_is_too_long_ends_in_a_hash() -> None:
    """Two long names that begin alike have objects of their own, which the API server takes."""
    first, second = need_configmap("n" * 240 + "a"), need_configmap("n" * 240 + "b")

    assert 253 == len(first) == len(second)
    assert first != second


RESERVE = 512 * MIB
HELD = MostHeld(4 * GIB)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (MostHeld(0), 640),
        (MostHeld(1 * GIB), 1600),
        (HELD, 6528),
        (MostHeld(4 * GIB, processes=2, shares=2), 6336),
        (MostHeld(4 * GIB, processes=2, process_bytes=2 * GIB, shares=2), 6336),
        (MostHeld(4 * GIB, processes=2, process_bytes=3 * GIB, shares=2), 9728),
        (MostHeld(4 * GIB, processes=2, process_bytes=3 * GIB), 4864),
        (MostHeld(4 * GIB, processes=2, process_bytes=1), 4736),
        (MostHeld(4 * GIB, processes=0, shares=0), 6528),
    ],
    ids=[
        *("nothing", "small", "one", "alike", "alike, told", "unlike", "unlike, not shared"),
        *("tiny", "none"),
    ],
)
def test_a_limit_is_the_share_rule_backwards(most: MostHeld, expected: int) -> None:
    """
    Of what a process held all but a quarter of its reserve may be tensors; these and the margin are
    seven tenths of the limit, and the limit less the contexts.
    """
    assert expected * MIB == limit_for(most, RESERVE)


def test_a_margin_can_be_chosen() -> None:
    """Without a margin the limit is for what was measured alone."""
    assert 5696 * MIB == limit_for(HELD, RESERVE, 0)


@pytest.mark.parametrize(
    ("too_small", "terms", "expected"),
    [
        (0, TargetTerms(RESERVE), LimitTarget(6528 * MIB, 6528 * MIB)),
        (5 * GIB, TargetTerms(RESERVE), LimitTarget(6528 * MIB, 6528 * MIB)),
        (6 * GIB, TargetTerms(RESERVE), LimitTarget(7680 * MIB, 6528 * MIB, 6 * GIB)),
        (
            6 * GIB,
            TargetTerms(RESERVE, card_bytes=7 * GIB, most_bytes=20 * GIB),
            LimitTarget(7 * GIB, 6528 * MIB, 6 * GIB, 7 * GIB),
        ),
        (
            0,
            TargetTerms(RESERVE, most_bytes=5 * GIB),
            LimitTarget(5 * GIB, 6528 * MIB, None, 5 * GIB),
        ),
        (0, TargetTerms(RESERVE, card_bytes=15 * GIB), LimitTarget(6528 * MIB, 6528 * MIB)),
    ],
    ids=["measured", "raised enough", "raised", "card", "ceiling", "fits"],
)
def test_a_limit_that_was_too_small_is_left_by_a_quarter(
    too_small: int, terms: TargetTerms, expected: LimitTarget
) -> None:
    """The larger of both counts, within the card and what is allowed."""
    assert expected == target_for([HELD], too_small, terms)


def test_a_raise_does_not_feed_itself() -> None:
    """The target that came of a raise is not raised again while it holds."""
    terms = TargetTerms(RESERVE)
    first = target_for([HELD], 6 * GIB, terms)

    assert first == target_for([HELD], 6 * GIB, terms)


@given(
    tensors=st.integers(0, 190 * GIB),
    count=st.integers(1, 8),
    reserve=st.sampled_from([512 * MIB, 640 * MIB, 768 * MIB]),
    part=st.floats(0.25, 1.0),
    known=st.booleans(),
)
def test_what_was_measured_fits_whatever_its_contexts_were(
    tensors: int, count: int, reserve: int, part: float, *, known: bool
) -> None:
    """
    Told its share of the limit, each of several processes gets its tensors and a margin, be its
    context a quarter of the reserve or all of it.
    """
    context = int(reserve * part)
    one = tensors + context
    most = MostHeld(one * count, count, one if known else 0, count)
    limit = limit_for(most, reserve)
    may = allowance(limit, limit, ShareTerms(reserve, count))

    assert limit >= one * count * 1.15
    assert not may.starved
    assert may.bytes >= int(tensors * 1.149)
