"""All models' needs as a page for a browser."""

import datetime as dt
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from gpufence.need import Confidence, NeedReasons
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.verbs.recommend import page_style
from kubectl_gpufence.verbs.recommend.lines import Packing
from kubectl_gpufence.verbs.recommend.page import (
    ChartDay,
    ModelDays,
    amount_label,
    chart,
    chart_days,
    ordinal,
    page,
    words,
)
from tests.support.builders import NEED_KEY, need_day, need_summary

HOSTILE = '"><script>alert(1)</script>\x1b[31m'
PACKED = Packing("Tesla T4", 15 * GIB, 4, 3, 1, 5, 2, 12 * GIB)
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """
    What a browser would make of a page: its elements and their attributes; whatever is left open or
    closed twice is an error.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert [] == self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self._open.pop()

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def drawn(*days: ChartDay, target: int | None = None) -> ET.Element:
    """Draw days, and read the picture as the XML that it is, but for HTML's own entities."""
    picture = chart(days, target, "Deployment/classifier")
    return ET.fromstring(picture.replace("&times;", "x"))


def day(number: int, **changes: Any) -> ChartDay:
    plain = ChartDay(f"2026-11-{number:02}", 4 * GIB, 5 * GIB, 8 * GIB, 0, out_of_memory=False)
    return plain._replace(**changes)


def classes(picture: ET.Element) -> list[str]:
    return [each.get("class", "") for each in picture if each.get("class") not in ("grid", "axis")]


def model(**changes: Any) -> ModelDays:
    return ModelDays(need_summary(**changes), tuple(need_day(number) for number in range(1, 9)))


def written(
    *models: ModelDays, cards: tuple[Packing, ...] = (), notes: tuple[str, ...] = ()
) -> str:
    return "\n".join(page(models, cards, "all namespaces", notes, page_style()))


def test_rows_of_one_day_are_one_bar() -> None:
    """
    Nodes are put together by day: the most of each, what all processes were told, and evictions.
    """
    rows = (
        need_day(2, told_bytes=None, limit_bytes=None, evictions=1),
        need_day(1),
        need_day(2, peak_bytes=GIB, told_bytes=GIB, shares=3, evictions=2),
        need_day(1, told_bytes=GIB, out_of_memory_limit_bytes=GIB, shares=0),
        need_day(3, told_bytes=None, limit_bytes=None),
    )

    assert [
        ChartDay("2026-11-01", 4 * GIB, 5 * GIB, 8 * GIB, 0, out_of_memory=True),
        ChartDay("2026-11-02", 4 * GIB, 3 * GIB, 8 * GIB, 3, out_of_memory=False),
        ChartDay("2026-11-03", 4 * GIB, None, None, 0, out_of_memory=False),
    ] == chart_days(rows)


def test_a_picture_has_bars_and_lines() -> None:
    """What was held is a bar, red above its limit; told, limit and target are lines over it."""
    picture = drawn(day(1), day(2, held_bytes=9 * GIB), target=6 * GIB)

    assert ["held", "over", "told", "limit", "target"] == classes(picture)


def test_a_day_long_before_the_others_is_left_out() -> None:
    """One that only a wrong clock has known makes no picture too wide to see the others in it."""
    old = day(1)._replace(day="1970-01-01")

    assert ["held"] == classes(drawn(old, day(9, told_bytes=None, limit_bytes=None)))


def test_a_date_stays_within_the_picture() -> None:
    """The last of many narrow days stands at the edge."""
    texts = [each for each in drawn(day(1), day(28)) if each.text == "11-28"]

    assert ["342"] == [each.get("x") for each in texts]


def test_a_page_about_nobody_says_so() -> None:
    """There is no table without models."""
    text = written(notes=("no agent has measured a model yet",))

    assert "No model has been measured yet." in text
    assert "<table>" not in text


def test_a_line_has_holes_where_nothing_was_said() -> None:
    """
    It steps from one day to the next, and begins anew after a day without a value or without use.
    """
    days = (day(1), day(2, limit_bytes=9 * GIB), day(3, limit_bytes=None), day(4), day(6))
    picture = drawn(*days)
    (line,) = [each.get("d", "") for each in picture if each.get("class") == "limit"]

    assert (3, 1, 4) == (line.count("M"), line.count("V"), line.count("H"))


def test_a_day_on_which_a_limit_was_too_small_is_marked() -> None:
    """Evictions and failed allocations stand above their bar."""
    picture = drawn(day(1, evictions=2, out_of_memory=True), day(2, evictions=1), day(3))
    marks = [each.text for each in picture if each.get("class") == "mark"]

    assert ["!x", "!"] == marks


def test_a_picture_without_lines_is_a_picture() -> None:
    """Where nothing was told, allowed or proposed, the bars are all there is."""
    picture = drawn(day(1, told_bytes=None, limit_bytes=None))

    assert ["held"] == classes(picture)


def test_every_bar_says_its_figures() -> None:
    """Who points at a bar, or cannot see it, reads what it shows."""
    assert (
        "2026-11-01: held 4096 MiB, cap 5120 MiB, limit 8192 MiB, evicted 2x, out of memory"
    ) == words(day(1, evictions=2, out_of_memory=True))
    assert "2026-11-02: held 4096 MiB" == words(day(2, told_bytes=None, limit_bytes=None))


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (100 * MIB, ["0", "40 MiB"]),
        (3 * GIB, ["0", "800 MiB"]),
        (4 * GIB, ["0", "1 GiB"]),
        (13 * GIB, ["0", "4 GiB"]),
        (70 * GIB, ["0", "20 GiB"]),
        (130 * GIB, ["0", "40 GiB"]),
    ],
)
def test_the_axis_has_round_steps(held: int, expected: list[str]) -> None:
    """Four equal steps of a round size reach above everything."""
    picture = drawn(day(1, held_bytes=held, told_bytes=None, limit_bytes=None))
    labels = [each.text for each in picture if each.get("text-anchor") == "end"]

    assert expected == labels[:2]
    assert 5 == len(labels)


def test_amounts_of_the_axis_are_read_in_their_unit() -> None:
    """Whole GiB are written so."""
    assert ("2 GiB", "1536 MiB") == (amount_label(2 * GIB), amount_label(1536 * MIB))


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (4, 2), (5, 3), (14, 3)])
def test_dates_stand_below_where_there_is_room(count: int, expected: int) -> None:
    """The first and the last day, and one in the middle of many."""
    picture = drawn(*(day(number) for number in range(1, count + 1)))
    dates = [each for each in picture if each.get("y") == "173"]

    assert expected == len(dates)


def test_days_are_counted_as_calendars_do() -> None:
    """Months, years and leap days are as long as they are."""
    start = dt.date(2027, 12, 1)
    days = [start + dt.timedelta(days=number) for number in range(500)]
    counted = [ordinal(each.isoformat()) for each in days]

    assert list(range(counted[0], counted[0] + 500)) == counted


def test_a_page_is_whole_and_fetches_nothing() -> None:
    """Every element is closed, there is no script, and nothing points outside of the page."""
    text = written(model(), ModelDays(need_summary()), notes=("somebody is silent",))
    outline = Outline(text)
    links = [value for _, each in outline.elements for key, value in each.items() if key == "href"]

    assert [] == outline.named("script")
    assert {"#m0", "#m1"} == set(links)
    assert not re.search(r"(?i)https?:|src=|url\(|@import", text)
    assert "default-src 'none'; style-src 'unsafe-inline'" in text


def test_names_are_text_whatever_they_are() -> None:
    """
    Nothing that somebody calls his things becomes an element, an attribute or a control character.
    """
    key = NEED_KEY._replace(namespace=HOSTILE, kind=HOSTILE, name=HOSTILE, container=HOSTILE)
    hostile = model(key=key._replace(card=HOSTILE), reasons=NeedReasons(HOSTILE, HOSTILE, HOSTILE))
    cards = PACKED._replace(model=HOSTILE)
    text = "\n".join(page([hostile], [cards], HOSTILE, [HOSTILE], page_style()))
    outline, plain = Outline(text), Outline(written(model(), cards=(PACKED,), notes=("a",)))

    assert [tag for tag, _ in plain.elements] == [tag for tag, _ in outline.elements]
    assert [each.keys() for _, each in plain.elements] == [
        each.keys() for _, each in outline.elements
    ]
    assert "\x1b" not in text


def test_the_page_says_which_cards_the_targets_would_free() -> None:
    """Held and needed are told of each model of card on which any pod has a target."""
    none = PACKED._replace(model="NVIDIA L4", by_target=0)
    text = written(model(), cards=(PACKED, none, PACKED._replace(model="NVIDIA A2", needed=4)))

    assert (
        "<b>Tesla T4</b> 5 pods on 3 of 4 cards; at their targets 1 would do, which frees 2. "
        "2 of the pods have a target, the others count by their limits."
    ) in text
    assert (
        "NVIDIA A2</b> 5 pods on 3 of 4 cards; at their targets 4 would do, which frees 0." in text
    )
    assert "NVIDIA L4" not in text


def test_the_head_says_how_much_there_is() -> None:
    """Models, targets, how many of them can be trusted, and which days were measured."""
    low = need_summary(target_bytes=None, confidence=Confidence.LOW)
    text = written(model(), ModelDays(low))

    assert (
        "2 models, 1 target, 1 of high confidence. Measured from 2026-11-01 to 2026-11-08 (UTC)."
    ) in text


def test_without_days_there_is_nothing_to_explain() -> None:
    """A page of figures alone has no pictures and no legend."""
    outline = Outline(written(ModelDays(need_summary(capped=True, target_bytes=None))))

    assert [] == outline.named("svg")
    assert not any(each.get("class") == "legend" for each in outline.named("p"))
    assert any(each.get("class") == "badge capped" for each in outline.named("span"))


def test_the_page_is_made_for_every_place() -> None:
    """Its style knows dark screens, narrow windows and paper."""
    for place in ("prefers-color-scheme: dark", "max-width: 60rem", "@media print"):
        assert place in page_style()
