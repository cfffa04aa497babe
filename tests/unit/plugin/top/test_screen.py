"""A watch as a screen full of lines."""

import re
from dataclasses import replace

import pytest

from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.verbs.top.screen import ScreenSize, Shown, WatchView, page_of, screen
from kubectl_gpufence.view import Display, Field, clipped, narrowed, width_of
from tests.support.plugin_cases import odd, odd_cards, silent, typical

SIZE = ScreenSize(120, 20)
PLAIN, COLOURED = Display(), Display(colour=True)


def lines_of(
    view: WatchView | None = None,
    cluster: ClusterAnswers | None = None,
    size: ScreenSize = SIZE,
    display: Display = PLAIN,
    namespace: str = "",
    note: str = "",
) -> list[str]:
    shown = Shown(cluster or typical(), namespace, "14:02:03", note)
    return screen(view or WatchView(), shown, size, display)[0]


def column(title: str, lines: list[str]) -> list[str]:
    """Return what stands below a title, where all before it is single words."""
    titles = [word.rstrip("▼▲v^") for word in lines[1].split()]
    return [line.split()[titles.index(title)] for line in lines[2:-1] if line.strip()]


@pytest.mark.parametrize("columns", [10, 30, 60, 90, 120, 250])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("what", ["pods", "cards", "nodes"])
@pytest.mark.parametrize("display", [PLAIN, COLOURED], ids=["plain", "coloured"])
def test_no_screen_overflows(what: str, height: int, columns: int, display: Display) -> None:
    """Whatever the window's size, lines are as many and as wide as fit."""
    crowd = replace(odd_cards(), notes=("a" * 300, "b", "c", "d"))
    for cluster in (odd(), crowd):
        for view in (WatchView(what), WatchView(what, help=True), WatchView(what, wide=True)):
            lines = lines_of(view, cluster, ScreenSize(columns, height), display)

            assert len(lines) <= height
            assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= columns for line in lines)


def test_the_title_says_what_is_seen() -> None:
    """Whose pods, how many, when, which of them, and whether that goes on."""
    assert "gpufence top pods  all namespaces  4 pods  14:02:03" == lines_of()[0]
    assert (
        "gpufence top cards  namespace team-a  0 of 1 cards  14:02:03  with nothing  PAUSED"
        == lines_of(WatchView("cards", filter="nothing", paused=True), namespace="team-a")[0]
    )
    assert "1 card, from" not in lines_of(WatchView("cards", offset=7))[0]


def test_columns_that_do_not_fit_are_left_out() -> None:
    """What says least goes first; a name, what it holds and the verdict stay."""
    titles = [
        lines_of(size=ScreenSize(columns, 20))[1].split() for columns in (120, 95, 80, 60, 40)
    ]

    assert [10, 9, 7, 5, 3] == [len(row) for row in titles]
    assert ["POD", "USED", "VERDICT"] == titles[-1]


def test_a_wide_view_has_them_all() -> None:
    """And more than a common table."""
    lines = lines_of(WatchView(wide=True), size=ScreenSize(250, 20))

    assert {"NAMESPACE", "NODE", "OWNER", "UUID"} <= set(lines[1].split())


def test_the_largest_is_first_and_unknown_is_last() -> None:
    """Inverted, the smallest is first, and unknown is last all the same."""
    view = WatchView(sort="USED")
    names = column("POD", lines_of(view, odd(), display=Display(unicode=False)))
    turned = column("POD", lines_of(view._replace(inverted=True), odd()))

    assert ("observed", "observed") == (names[0], turned[4])
    assert names[5:] == turned[5:]
    assert "trainer-0" in names[5:]


@pytest.mark.parametrize(
    ("what", "sort", "first"),
    [
        ("pods", "NAMESPACE", "trainer-0"),
        ("pods", "POD", "a-deplo"),
        ("pods", "NODE", "trainer-0"),
        ("pods", "CARD", "trainer-0"),
        ("pods", "LIMIT", "trainer-0"),
        ("pods", "TOLD", "trainer-0"),
        ("pods", "SHARE", "trainer-0"),
        ("pods", "IDLE", "notebook"),
        ("pods", "VERDICT", "trainer-0"),
    ],
)
def test_pods_are_sorted_by_every_column(what: str, sort: str, first: str) -> None:
    """Amounts from the largest on, names from A on."""
    lines = lines_of(WatchView(what, sort=sort))

    assert lines[2].split()[1].startswith(first)


@pytest.mark.parametrize(
    ("what", "sort", "first"),
    [
        ("cards", "NODE", ["gpu-1", "0"]),
        ("cards", "CARD", ["gpu-1", "0"]),
        ("cards", "MODEL", ["gpu-1", "0"]),
        ("cards", "TOTAL", ["gpu-1", "0"]),
        ("cards", "USED", ["gpu-1", "1"]),
        ("cards", "SHARE", ["gpu-1", "1"]),
        ("cards", "COMMITTED", ["gpu-1", "2"]),
        ("cards", "NOBODY'S", ["gpu-1", "0"]),
        ("cards", "STATE", ["gpu-1", "1"]),
        ("nodes", "CARDS", ["gpu-1", "3"]),
        ("nodes", "TOTAL", ["gpu-1", "3"]),
        ("nodes", "USED", ["gpu-2", "1"]),
        ("nodes", "SHARE", ["gpu-2", "1"]),
        ("nodes", "COMMITTED", ["gpu-1", "3"]),
        ("nodes", "NOBODY'S", ["gpu-2", "1"]),
        ("nodes", "FENCED", ["gpu-1", "3"]),
        ("nodes", "OVER", ["gpu-1", "3"]),
        ("nodes", "AGENT", ["gpu-2", "1"]),
    ],
)
def test_cards_and_nodes_are_sorted_by_every_column(what: str, sort: str, first: list[str]) -> None:
    """What is wrong comes before what is well."""
    lines = lines_of(WatchView(what, sort=sort), odd_cards())

    assert first == lines[2].split()[:2]


@pytest.mark.parametrize(
    ("what", "words", "count"),
    [
        ("pods", "TRAINER-0", "1 of 4 pods"),
        ("pods", "team-a/notebook", "1 of 4 pods"),
        ("pods", "gpu-1 within", "2 of 4 pods"),
        ("cards", "tesla", "4 of 5 cards"),
        ("nodes", "silent", "1 of 5 nodes"),
    ],
)
def test_a_filter_leaves_what_has_all_its_words(what: str, words: str, count: str) -> None:
    """In any of the texts that tell lines apart, capital or small."""
    cluster = typical() if what == "pods" else odd_cards()

    assert count in lines_of(WatchView(what, filter=words), cluster)[0]


def test_the_last_lines_are_in_view_at_the_end() -> None:
    """Who scrolls beyond them sees them, and comes back at once."""
    shown = Shown(odd(), "", "14:02:03")
    lines, view = screen(WatchView(offset=10**9), shown, ScreenSize(120, 6), PLAIN)

    assert 8 == view.offset
    assert "11 pods, from 9" in lines[0]
    assert 3 == len([line for line in lines[2:5] if line])


def test_notes_stand_above_the_keys() -> None:
    """The newest trouble first, and how many more there are."""
    cluster = replace(silent(), notes=tuple("bcd"))

    assert ["b", "c", "d"] == lines_of(cluster=cluster)[-4:-1]
    assert ["a", "b", "2 notes more: kubectl gpufence top shows them"] == (
        lines_of(cluster=cluster, note="a")[-4:-1]
    )


def test_what_is_typed_has_its_end_in_sight() -> None:
    """However long it is; nothing in it steers the terminal."""
    typed = lines_of(WatchView(filter="abc" * 60 + "\x1b[2J", typing=True))[-1]

    assert "filter: abc_" == lines_of(WatchView(filter="abc", typing=True))[-1]
    assert (120, True, True) == (len(typed), typed.startswith("..."), typed.endswith("?[2J_"))


def test_the_keys_stand_out_where_there_are_colours() -> None:
    """As in htop."""
    assert lines_of(display=COLOURED)[-1].startswith("\x1b[7m q \x1b[0m quit")
    assert lines_of(display=PLAIN)[-1].startswith("q quit  / filter")
    assert "any key goes back" == lines_of(WatchView(help=True))[-1]


def test_a_page_is_what_is_seen_at_once() -> None:
    """At least a line."""
    assert (19, 1) == (page_of(ScreenSize(80, 24)), page_of(ScreenSize(80, 3)))


def test_lines_are_cut_where_the_terminal_ends() -> None:
    """Colours take no place and do not leak; East Asian characters take two."""
    assert "abc" == clipped("abc", 3)
    assert "ab" == clipped("abc", 2)
    assert "\x1b[31mab\x1b[0m" == clipped("\x1b[31mabc\x1b[0m", 2)
    assert "漢" == clipped("漢字", 3)


def test_colours_take_no_place() -> None:
    """A line is as wide as what is seen of it."""
    assert (3, 5) == (width_of("\x1b[31mabc\x1b[0m"), width_of("a漢字"))


def test_a_column_is_given_up_only_for_want_of_room() -> None:
    """Names count for as little as they can be shortened to."""
    columns = [
        Field[str]("name", str, "NAME", shrinks=True),
        Field[str]("a", lambda _: "1", "A", spare=2),
        Field[str]("b", lambda _: "2" * 10, "B", spare=1),
    ]

    def titles(width: int) -> list[str]:
        left = narrowed(columns, ["x" * 40], width, Display())
        return [item.title for item in left]

    assert ["NAME", "A", "B"] == titles(27)
    assert ["NAME", "A"] == titles(26)
    assert ["NAME"] == titles(5)
    assert ["NAME", "A", "B"] == [item.title for item in narrowed(columns, [], 11, Display())]
