"""What is said of a model's need, from the days of all nodes."""

from typing import Any

import pytest

from gpufence.need import (
    CardNeed,
    Confidence,
    NeedDay,
    NeedSummary,
    NodeNeed,
    OwnerNeed,
    ProposalTerms,
    cards_of,
    merged,
    summaries,
    summarise,
)
from gpufence.need.summary import together
from gpufence.quantity import GIB, MIB
from tests.support.builders import NEED_KEY as KEY
from tests.support.builders import T4, need_day, need_summary


def days(count: int, **changes: Any) -> list[NeedDay]:
    return [need_day(number, **changes) for number in range(1, count + 1)]


def summary(*rows: NeedDay, terms: ProposalTerms | None = None) -> NeedSummary:
    said = summarise(OwnerNeed(KEY, rows), T4, terms or ProposalTerms())
    assert said is not None
    return said


def test_all_that_is_said_of_a_model_has_its_reason() -> None:
    """Seven days of three pods whose peak stands make a target that can be trusted."""
    said = summary(*days(7))

    assert (4 * GIB, 6528 * MIB, Confidence.HIGH) == said[1:4]
    assert (7, 7, 7 * 86_400.0) == (said.days, said.pods, said.held_seconds)
    assert (8 * GIB, 5 * GIB) == (said.limit_bytes, said.told_bytes)
    assert (
        "4096 MiB held by one pod on one card on 2026-11-01, as the agent measured",
        "the peak and 15 %, as a limit by the share rule",
        "7 days, 7 pods, and the peak stands",
        "",
    ) == said.reasons


LOW, MEDIUM, HIGH = Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH
RISING = [*days(7), need_day(8, peak_bytes=5 * GIB)]
HINDERED = [*days(2, evicted_limit_bytes=3 * GIB, limit_bytes=3 * GIB), *days(8)[2:]]
SETTLED = [*days(2, out_of_memory_limit_bytes=3 * GIB), *days(9, limit_bytes=None)[2:]]
HOUR = "memory was held for 1h, of the 1d that it takes"


@pytest.mark.parametrize(
    ("rows", "confidence", "why"),
    [
        (days(1, held_seconds=3600.0, started=0), LOW, f"1 day, 3 pods; {HOUR}"),
        (days(8, pods=1, started=0), LOW, "8 days, 1 pod; one pod may differ from the next"),
        (days(6, started=0), MEDIUM, "6 days, 3 pods; 6 days of the 7 that it takes"),
        (days(8, pods=2, started=0), MEDIUM, "8 days, 2 pods; 2 pods of the 3 that it takes"),
        (RISING, MEDIUM, "8 days, 8 pods; its peak rose by more than 5 % within the last 3 days"),
        (
            HINDERED,
            MEDIUM,
            "8 days, 8 pods; 6 days under a limit above 3072 MiB of the 7 that it takes",
        ),
        (SETTLED, HIGH, "9 days, 9 pods, and the peak stands"),
    ],
    ids=["short", "one pod", "days", "pods", "rising", "hindered", "settled"],
)
def test_confidence_says_what_it_lacks(
    rows: list[NeedDay], confidence: Confidence, why: str
) -> None:
    """
    A day and two pods make a target, a week and three pods one to trust, unless it rises or was
    hindered.
    """
    said = summary(*rows)

    assert (confidence, why) == (said.confidence, said.reasons.confidence)
    assert (confidence is LOW) == (said.target_bytes is None)
    assert (confidence is LOW) == (said.reasons.target == "none: too little was measured")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            days(7, capped=True),
            (
                "none: 4096 MiB is all that it is configured to take, so its need is unknown; let "
                "it grow (gpufence.io/growth, in observe)"
            ),
        ),
        (
            days(7, peak_bytes=15_000 * MIB, told_bytes=None),
            (
                "none: 15000 MiB is all of its card, so its need is unknown; let it grow "
                "(gpufence.io/growth, in observe)"
            ),
        ),
    ],
    ids=["told", "whole card"],
)
def test_who_stands_at_his_cap_has_no_target(rows: list[NeedDay], why: str) -> None:
    """What takes all it gets shows its cap, and is told how to show its need."""
    said = summary(*rows)

    assert (True, None, why) == (said.capped, said.target_bytes, said.reasons.target)


def test_who_breaks_his_limit_is_not_at_his_cap() -> None:
    """A program that reads no setting shows what it needs, and what it was evicted at is left."""
    greedy = need_day(1, peak_bytes=9 * GIB, process_bytes=9 * GIB, capped=True)
    went = greedy._replace(day="2026-11-02", evictions=1, evicted_limit_bytes=8 * GIB)
    said = summary(greedy, went)

    assert (False, 14_976 * MIB) == (said.capped, said.target_bytes)
    assert "25 %" not in said.reasons.target


def test_who_took_more_later_was_capped_once_only() -> None:
    """A need that was seen above an old cap is a need."""
    said = summary(need_day(1, capped=True), *days(8, peak_bytes=5 * GIB)[1:])

    assert not said.capped
    assert 5 * GIB == said.peak_bytes


@pytest.mark.parametrize("context", [128 * MIB, 300 * MIB, 512 * MIB])
def test_what_takes_all_it_is_told_never_gets_more_for_that(context: int) -> None:
    """However small its contexts are: else each target would make the next one."""
    told = 3180 * MIB
    took = {"told_bytes": told, "peak_bytes": told + context, "process_bytes": told + context}
    said = summary(*days(9, **took))
    sure = summary(*days(9, capped=True, **took))

    assert (True, None, True) == (said.capped, said.target_bytes, said.perhaps)
    assert "may be, with its CUDA context, all that it is configured" in said.reasons.target
    assert said.reasons.target.endswith(" MiB and look again")
    assert (True, None, False) == (sure.capped, sure.target_bytes, sure.perhaps)


def test_a_model_under_its_own_target_is_not_capped() -> None:
    """A need that stays what it was leaves the margin free."""
    need = {"peak_bytes": 1536 * MIB, "process_bytes": 1536 * MIB}
    first = summary(*days(9, told_bytes=None, **need)).target_bytes or 0
    later = summary(*days(9, told_bytes=first * 7 // 10, limit_bytes=first, **need))

    assert (False, first) == (later.capped, later.target_bytes)


def test_a_limit_that_was_too_small_raises_the_target() -> None:
    """The target is a quarter above it, and both days and evictions are counted."""
    said = summary(
        need_day(1, evictions=2, evicted_limit_bytes=8 * GIB, evicted_bytes=9 * GIB),
        need_day(2, out_of_memory_limit_bytes=10 * GIB),
        *days(9, limit_bytes=12 * GIB)[2:],
    )

    assert (14_976 * MIB, 1, 2) == (said.target_bytes, said.out_of_memory, said.evictions)
    assert 9 * GIB == said.peak_bytes

    raised = summary(*days(7, out_of_memory_limit_bytes=8 * GIB))
    assert 10 * GIB == raised.target_bytes
    assert "25 % above 8192 MiB, at which it was evicted or out of memory" == raised.reasons.target


@pytest.mark.parametrize(
    ("rows", "terms", "target", "why"),
    [
        (
            days(7),
            ProposalTerms(most_bytes=5 * GIB),
            5 * GIB,
            "the peak and 15 %, as a limit by the share rule; the ceiling bounds it at 5120 MiB",
        ),
        (
            days(7, peak_bytes=12 * GIB, process_bytes=0),
            ProposalTerms(margin_percent=20, most_bytes=20 * GIB),
            15 * GIB,
            "the peak and 20 %, as a limit by the share rule; its card bounds it at 15360 MiB",
        ),
    ],
    ids=["ceiling", "card"],
)
def test_a_target_is_bounded(
    rows: list[NeedDay], terms: ProposalTerms, target: int, why: str
) -> None:
    """Neither the card nor what somebody allows is exceeded, and the reason says so."""
    said = summary(*rows, terms=terms)

    assert (target, why) == (said.target_bytes, said.reasons.target)


def test_a_peak_says_who_measured_it() -> None:
    """The driver's own high-water mark sees what a look each second misses."""
    said = summary(need_day(1, driver_peak=True, processes=2))

    assert (
        "4096 MiB held by one pod on one card in 2 processes on 2026-11-01, "
        "the driver's own high-water mark"
    ) == said.reasons.peak


def test_nodes_differ_and_the_most_of_them_counts() -> None:
    """Peaks are the largest of any node, pods are added up, and time is not."""
    needs = [
        NodeNeed("a", (OwnerNeed(KEY, (need_day(1, pods=1, started=0),)),), (T4,)),
        NodeNeed(
            "b", (OwnerNeed(KEY, (need_day(1, peak_bytes=5 * GIB, pods=1, started=0),)),), (T4,)
        ),
    ]
    (said,) = summaries(needs)

    assert (5 * GIB, 2, 1, 86_400.0) == (said.peak_bytes, said.pods, said.days, said.held_seconds)


def test_rows_of_one_day_stay_apart() -> None:
    """Days are in order, and each node keeps its row."""
    needs = [
        NodeNeed("a", (OwnerNeed(KEY, (need_day(2),)),)),
        NodeNeed("b", (OwnerNeed(KEY, (need_day(1), need_day(2))),)),
    ]

    assert [OwnerNeed(KEY, (need_day(1), need_day(2), need_day(2)))] == merged(needs)


def test_cards_of_one_model_count_by_the_least() -> None:
    """Where nodes differ, the smallest card and the largest reserve are safe everywhere."""
    needs = [
        NodeNeed("a", cards=(CardNeed("T4", 16 * GIB, 500 * MIB),)),
        NodeNeed("b", cards=(CardNeed("T4", 15 * GIB, 600 * MIB),)),
    ]

    assert {"T4": CardNeed("T4", 15 * GIB, 600 * MIB)} == cards_of(needs)


def test_who_held_nothing_is_not_mentioned() -> None:
    """An owner without any peak has no need that anybody knows."""
    assert [] == summaries([NodeNeed("a", (OwnerNeed(KEY, (need_day(1, peak_bytes=0),)),))])
    assert summarise(OwnerNeed(KEY, (need_day(1, peak_bytes=0),))) is None


def test_a_card_that_nobody_tells_of_bounds_nothing() -> None:
    """Without its size the middle reserve counts and no bound."""
    said = summarise(OwnerNeed(KEY, tuple(days(7, told_bytes=None, limit_bytes=None))))

    assert said is not None
    assert (None, None) == (said.limit_bytes, said.told_bytes)
    assert 6528 * MIB == said.target_bytes


def test_a_process_that_no_list_showed_is_taken_for_the_largest() -> None:
    """Where one day does not tell the largest process, all that was held counts as one."""
    known = summary(*days(7, processes=2, process_bytes=2 * GIB))
    unknown = summary(*days(6, processes=2, process_bytes=2 * GIB), need_day(7, process_bytes=0))

    assert (4736 * MIB, 6528 * MIB) == (known.target_bytes, unknown.target_bytes)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ({"main": "2026-11-09", "side": "2026-11-08"}, [["main", "side"]]),
        ({"server": "2026-11-09", "main": "2026-11-07"}, [["server"], ["main"]]),
        ({"main": "", "side": ""}, [["main", "side"]]),
        ({}, [[]]),
    ],
    ids=["both", "renamed", "unknown", "none"],
)
def test_containers_of_the_last_two_days_run_together(
    days: dict[str, str], expected: list[list[str]]
) -> None:
    """One that was renamed in a roll-out does not come on top of itself."""
    rows = [
        need_summary(key=KEY._replace(container=name), last_day=day) for name, day in days.items()
    ]

    assert expected == [[item.key.container for item in group] for group in together(rows)]


RESTS = ((GIB, 80_000.0), (4 * GIB, 2_000.0))
WORKS = ((GIB, 80_000.0), (4 * GIB, 6_400.0))
BUSY = [*days(6, levels=RESTS), need_day(7, levels=((GIB, 1.0), (4 * GIB, 86_000.0)))]
WHY = (
    "no more than 1024 MiB was held for 95 % of the time of 7 days, and 15 %; the target is for "
    "the rest, as its limit"
)


@pytest.mark.parametrize(
    ("rows", "request_bytes"),
    [
        (days(7, levels=RESTS), 1216 * MIB),
        ([*days(7), *days(14, levels=RESTS)[7:]], 1216 * MIB),
        (days(7, levels=WORKS), None),
        (BUSY, None),
        (days(7), None),
        ([*days(1), *days(7, levels=RESTS)[1:]], None),
        (days(7, levels=((GIB, 3_600.0),)), None),
        (days(7, levels=((4 * GIB, 86_400.0),)), None),
        (days(6, levels=RESTS), None),
        (days(7, levels=RESTS, capped=True), None),
    ],
    ids=[
        *("most of the time", "since an upgrade", "more than a twentieth", "one busy day"),
        *("an older agent", "six such days", "hours", "nearly the target", "not sure", "capped"),
    ],
)
def test_a_request_is_what_was_enough_most_of_the_time(
    rows: list[NeedDay], request_bytes: int | None
) -> None:
    """It is proposed beside a target to be trusted, where a week says that far less is enough."""
    said = summary(*rows)

    assert request_bytes == said.request_bytes
    assert (WHY if request_bytes else "") == said.reasons.request


def test_a_margin_counts_for_the_request_too() -> None:
    """Who leaves more above the peak leaves more above what is held mostly."""
    said = summary(*days(7, levels=RESTS), terms=ProposalTerms(margin_percent=50))

    assert 1536 * MIB == said.request_bytes
