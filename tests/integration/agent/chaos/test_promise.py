"""The reference model against histories made by hand: it must find what is wrong, and only that."""

from typing import Any

import pytest

from gpufence.quantity import GIB, MIB
from tests.integration.agent.chaos.card import Moment, Stand, Words, stand_of
from tests.integration.agent.chaos.promise import Findings, Promise, findings
from tests.integration.agent.chaos.truth import (
    Blind,
    History,
    Life,
    Span,
    Start,
    fullest,
    widened,
    without,
)

PROMISE = Promise(
    interval_seconds=0.4,
    list_seconds=2.0,
    hold_seconds=2.0,
    short_hold_seconds=1.6,
    grace_seconds=3.0,
    give_back_seconds=2.0,
    lend_after_seconds=3.0,
)
# list, confirmed, one interval, the hold, and what a busy machine may take
LONGEST = 2.0 + 1.2 + 2.0 + 0.2 + 2.0


def life(over: tuple[float, float] | None = None, **more: Any) -> Life:
    """A pod that came at second 100 and was over its limit for a while."""
    words = Words("a", GIB, **{key: more.pop(key) for key in list(more) if key in _WORDS})
    spans = {} if over is None else {0: [Span(*over)]}
    return Life("uid-a", words, first_use=100.0, over=more.pop("spans", spans), **more)


_WORDS = {"fenced", "injected", "shielded", "works"}


def found(item: Life, **more: Any) -> Findings:
    return findings(History({item.uid: item}, **more), PROMISE)


def at(second: float) -> Span:
    return Span(second, second + 0.5)


def test_eviction_after_the_hold_is_right() -> None:
    """A pod over its limit for the hold may be evicted, and its violation counts."""
    result = found(life((110.0, 113.0), evicted=at(113.0)))

    assert ((), (), 1, 1) == (result.false, result.missed, result.evictions, result.violations)
    assert 3.0 == result.latest


EARLY = {0: [Span(100.0, 102.0)]}
LONG = {0: [Span(100.0, 100.1 + LONGEST)]}
SAWTOOTH = {0: [Span(110.0 + 2 * number, 111.5 + 2 * number) for number in range(3)]}
TWO_CARDS = {0: [Span(110.0, 110.4)], 1: [Span(112.0, 112.4)]}
GLIMPSE = {0: [Span(110.0, 110.1)]}
BEFORE_AND_AFTER = {0: [Span(110.0, 112.0), Span(119.5, 120.2)]}
BETWEEN = {"blind": [Blind(Span(112.5, 118.5), "hung"), Blind(Span(113.0, 118.0), "lost", card=0)]}
ELSEWHERE = {"blind": [Blind(Span(112.5, 118.5), "lost", card=1)]}
FULL = {0: [Span(110.0, 114.0), Span(118.0, 118.3)]}
ASKED = {0: [Span(100.0, 102.1)]}
AGAIN = {0: [Span(110.0, 110.4), Span(140.0, 141.0)]}
ANEW = {0: [Span(110.0, 111.0), Span(190.0, 190.1)]}
FORBIDDEN = Blind(Span(105.0, 120.0), "no policy", forbids=True)
HELD = (105.0, 113.0)


@pytest.mark.parametrize(
    ("item", "more", "false"),
    [
        (life(evicted=at(113.0)), {}, 1),
        (life((110.0, 110.3), evicted=at(111.0)), {}, 1),
        (life((110.0, 113.0), evicted=at(130.0)), {}, 1),
        (life((100.5, 104.0), evicted=at(104.0)), {}, 1),
        (life((110.0, 113.0), evicted=at(113.0), fenced=False), {}, 1),
        (life((110.0, 113.0), evicted=at(113.0), injected=False), {}, 1),
        (life(spans=TWO_CARDS, evicted=at(112.5)), {}, 1),
        (life(pressing=EARLY, barely=EARLY, evicted=at(102.0), injected=False), {}, 0),
        (life(pressing=EARLY, evicted=at(102.0)), {}, 1),
        (life(HELD, evicted=at(113.0)), {"suspended": [Span(104.0, 120.0)]}, 1),
        (life(spans=SAWTOOTH, evicted=at(115.2)), {}, 0),
        (life(HELD, evicted=at(112.0)), {"starts": [Start(90.0, 120.0, 125.0, 0.0)]}, 1),
        (life(HELD, evicted=at(112.0)), {"starts": [Start(90.0, 111.0, 114.0, 2.0)]}, 1),
        (life(HELD, evicted=at(112.0)), {"blind": [FORBIDDEN]}, 1),
        (life(spans=GLIMPSE, evicted=at(113.5)), {"fog": [Span(110.1, 113.0)]}, 0),
        (life(spans=GLIMPSE, evicted=at(113.5)), {}, 1),
        (life(spans=BEFORE_AND_AFTER, evicted=at(120.2)), BETWEEN, 0),
        (life(spans=BEFORE_AND_AFTER, evicted=at(120.2)), ELSEWHERE, 1),
        (life(spans=FULL, evicted=at(118.3)), {}, 0),
        (life(may_be_asked=ASKED, may_recall=ASKED, evicted=at(104.0)), {}, 0),
        (life(may_be_asked=ASKED, evicted=at(104.0)), {}, 1),
        (life(may_be_asked=AGAIN, may_recall=AGAIN, evicted=at(141.0)), {}, 0),
        (life(may_be_asked=ANEW, may_recall=ANEW, evicted=at(191.0)), {}, 1),
        (life(may_recall=ASKED, evicted=at(104.0)), {}, 1),
    ],
    ids=[
        *("never over", "too soon", "long ago", "in the grace", "unfenced", "not injected"),
        *("a little on each of two cards", "pressing a neighbour, in the grace too"),
        *("pressing that cures nothing", "while suspended", "a sawtooth", "the kill switch is on"),
        *("in the pause of a new agent", "no word of the operator", "what was not seen may be so"),
        *("over for a glimpse", "no look took anything back", "looks took it back"),
        *("the last look spills over", "asked for what it borrowed"),
        "asked, and its going gives nothing",
        *("asked again within a minute", "asked anew after a minute", "never asked"),
    ],
)
def test_false_eviction_is_found(item: Life, more: dict[str, Any], false: int) -> None:
    """
    A pod that had not been over its limit for the hold, or was not to be evicted, went wrongly.
    """
    assert false == len(found(item, **more).false)


OTHER_CARD = Blind(Span(115.0, 116.0), "lost", card=1)
LEAVING_TOO = {"leaving": {0: [Span(103.0, 104.0)]}}
LEAVING = {"leaving": {0: [Span(115.0, 116.0)]}}


@pytest.mark.parametrize(
    ("item", "more", "missed"),
    [
        (life((110.0, 110.1 + LONGEST)), {}, 1),
        (life((110.0, 109.9 + LONGEST)), {}, 0),
        (life((110.0, 125.0), evicted=at(124.0)), {}, 1),
        (life((110.0, 120.0)), {"blind": [Blind(Span(115.0, 116.0), "hung")]}, 0),
        (life((110.0, 120.0)), {"blind": [Blind(Span(115.0, 116.0), "lost", card=0)]}, 0),
        (life((110.0, 120.0)), {"fog": [Span(115.0, 116.0)]}, 0),
        (life((110.0, 120.0)), {"suspended": [Span(115.0, 116.0)]}, 0),
        (life((110.0, 120.0)), {"starts": [Start(112.0, 113.0, 114.0, 0.0)]}, 0),
        (life((110.0, 120.0)), {"blind": [OTHER_CARD]}, 1),
        (life((110.0, 120.0)), LEAVING, 1),
        (life((100.0, 110.0)), {}, 0),
        (life((110.0, 150.0), left_at=112.0), {}, 0),
        (life((110.0, 150.0), fenced=False), {}, 0),
        (life((110.0, 150.0), injected=False), {}, 0),
        (life((110.0, 150.0), shielded=True), {}, 0),
        (life(pressing=LONG, curing=LONG), {}, 1),
        (life(pressing=LONG, curing=LONG), LEAVING_TOO, 0),
        (life(taking=LONG, curing=LONG, injected=False), {}, 1),
        (life(taking=LONG, injected=False), {}, 0),
        (life(asked=LONG, recalled=LONG), {}, 1),
        (life(asked=LONG), {}, 0),
        (life(asked=LONG, recalled=LONG), LEAVING_TOO, 0),
        (life(asked=LONG, recalled=LONG), {"starts": [Start(90.0, 97.0, 98.0, 0.0)]}, 0),
    ],
    ids=[
        *("longer than promised", "not so long", "an eviction that comes late", "hung"),
        *("the card is lost", "fog", "suspended", "started anew", "another card is lost"),
        *("leaving pods where none is hurt", "in the grace", "left", "unfenced", "not injected"),
        *("shielded", "pressing for long", "pressing beside a leaving pod", "theft in the grace"),
        *("theft that its eviction does not end", "a loan that is kept", "one of many"),
        *("a loan beside a leaving pod", "a loan before it is known what is idle"),
    ],
)
def test_missed_violation_is_found(item: Life, more: dict[str, Any], missed: int) -> None:
    """A pod that stays over its limit for longer than was promised, in plain sight, was missed."""
    result = found(item, **more)

    assert missed == len(result.missed)
    assert () == result.false


def test_looks_in_a_row_make_a_span() -> None:
    """What two looks in a row have seen held in between; a look in between that has not ends it."""
    item = life()
    for second, used in ((1, 2), (2, 2), (3, 1), (4, 2)):
        item.saw(0, used * GIB, Span(second - 1, second), Stand())

    assert [Span(1, 2), Span(4, 4)] == item.over[0]
    assert [] == item.pressing[0]


def test_thresholds() -> None:
    """Over begins above 256 MiB or 3 %, pressing above 64 MiB."""
    assert (GIB + 256 * MIB, GIB + 64 * MIB) == Words("small", GIB).thresholds
    assert 10 * GIB + 10 * GIB * 3 // 100 == Words("large", 10 * GIB).thresholds[0]


TOTAL = 15 * GIB
PEOPLE = {
    "thief": Words("thief", GIB),
    "second": Words("second", GIB),
    "idle": Words("idle", 8 * GIB, card=0),
    "capped": Words("capped", GIB, fenced=False),
    "free": Words("free", GIB, watched=False, fenced=False),
}


def stood(nobodys: int = 0, going: tuple[str, ...] = (), **held: float) -> Stand:
    """Say who goes on a card where these hold so many GiB."""
    amounts = {uid: round(used * GIB) for uid, used in held.items()}
    free = TOTAL - sum(amounts.values()) - nobodys
    return stand_of(Moment(amounts, free, TOTAL, nobodys, going), 0, PEOPLE)


@pytest.mark.parametrize(
    ("stand", "curing"),
    [
        (stood(thief=6), set()),  # 8 GiB are owed, 9 are free
        (stood(thief=10), {"thief"}),
        (stood(thief=6, second=5.5), {"thief"}),
        (stood(thief=4, second=3.5, free=4), {"thief", "second"}),
        (stood(thief=2, free=10), set()),  # 1 GiB of 5
        (stood(thief=2, capped=10), set()),
        (stood(thief=9, nobodys=3 * GIB), {"thief"}),
        (stood(thief=10, going=("thief",)), set()),
        (stood(thief=1.2, idle=8, second=5.5), {"second"}),
        (stood(thief=1.2, idle=8, second=0.9, capped=0.95, nobodys=3 * GIB), set()),
    ],
)
def test_whom_a_shortage_evicts(stand: Stand, curing: set[str]) -> None:
    """The largest excess goes first, and nobody whose going cures nothing."""
    assert curing == stand.curing
    assert curing <= stand.barely


def test_a_tolerated_pod_goes_only_where_it_cures() -> None:
    """A little over the limit is held against nobody unless hardly anything is free without it."""
    people = {"a": Words("a", GIB), "b": Words("b", 13 * GIB)}
    held = {"a": GIB + 250 * MIB, "b": 13 * GIB}
    free = 420 * MIB
    alone = Moment(held, free, sum(held.values()) + free)
    beside = alone._replace(nobodys=GIB)

    assert {"a"} == stand_of(alone, 0, people).barely
    assert set() == stand_of(beside, 0, people).barely


LENT = {
    "a": Words("a", 10 * GIB, request=2 * GIB),
    "c": Words("c", 4 * GIB, request=2 * GIB),
    "lender": Words("lender", 6 * GIB, card=0),
    "over": Words("over", GIB),
}


@pytest.mark.parametrize(
    ("held", "idle", "recalled"),
    [
        ({"a": 10, "lender": 1}, (), {"a"}),
        ({"a": 10, "lender": 1}, ("lender",), set()),
        ({"a": 8, "lender": 1}, (), set()),
        ({"a": 8, "c": 3, "lender": 1}, (), {"a"}),
        ({"a": 2.2, "c": 3, "lender": 1}, (), set()),
        ({"a": 9, "over": 3, "lender": 1}, (), {"over", "a"}),
        ({"a": 7, "over": 4, "lender": 1}, (), {"over"}),
        ({"a": 10, "c": 4, "lender": 0.6}, ("lender",), {"a"}),
    ],
)
def test_who_gives_back(held: dict[str, float], idle: tuple[str, ...], recalled: set[str]) -> None:
    """What pods that are not idle miss is given back by the largest loan, or those over limits."""
    amounts = {uid: round(used * GIB) for uid, used in held.items()}
    people = {uid: words for uid, words in LENT.items() if uid in held}
    moment = Moment(amounts, TOTAL - sum(amounts.values()), TOTAL)
    stand = stand_of(moment, 0, people, asleep=idle, awake=set(held) - set(idle))

    assert recalled == stand.recalled
    assert [bool(recalled)] * 2 == [stand.misses, stand.may_miss]
    assert bool(recalled) is bool(stand.may_recall)


def test_who_sleeps() -> None:
    """A pod is surely idle after a long rest, surely not after a rise, and neither between."""
    item, busy = life(made_at=100.0), life(works=True, holds=GIB)
    item.moved(GIB, 100.5)

    assert [False, True] == [item.sleeps(now, 3.0, 0.0) for now in (106.0, 107.0)]
    assert not item.sleeps(107.0, 3.0, 105.0)
    assert [True, False] == [item.wakes(now, 3.0) for now in (101.0, 103.0)]
    assert busy.wakes(500.0, 3.0)
    item.moved(2 * GIB, 110.0)

    assert [True, False] == [item.wakes(now, 3.0) for now in (111.0, 113.0)]
    item.moved(GIB, 111.0)

    assert not item.wakes(111.5, 3.0)


def test_spans() -> None:
    """Spans are cut, widened and added up as they are in the picture."""
    assert [Span(0, 1), Span(3, 4)] == without(Span(0, 4), [Span(2, 3), Span(1, 2.5), Span(9, 10)])
    assert [Span(1, 6)] == widened([Span(2, 3), Span(4, 5)], 1)
    assert [Span(4.5, 6)] == widened([Span(2, 3), Span(4, 5)], 1, from_=4.5)
    assert 1.5 == fullest([Span(0, 1), Span(2, 3)], Span(2.5, 9), most=5)
    assert 0 == fullest([Span(0, 1)], Span(2, 3), most=5)
