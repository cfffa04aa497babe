"""`top --watch`: what keys do, and the screen full of lines that follows."""

import re
from dataclasses import replace

import pytest

from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.verbs.top.screen import (
    FOOTER,
    HELP,
    ScreenSize,
    Shown,
    WatchView,
    keys_of,
    page_of,
    pressed,
    screen,
    titles_of,
)
from kubectl_gpufence.view import Display, Field, clipped, table, width_of
from tests.support.plugin_cases import odd, odd_cards, silent, typical

PAGE = 10


def after(*keys: str, view: WatchView | None = None, namespace: str = "") -> WatchView | None:
    """Press keys one after the other."""
    at: WatchView | None = view or WatchView()
    for key in keys:
        assert at is not None
        at = pressed(at, key, titles_of(at.what, namespace), PAGE)
    return at


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("jk", ["j", "k"]),
        ("\x1b[A\x1b[B", ["up", "down"]),
        ("\x1bOH\x1b[4~\x1b[5~\x1b[6~", ["home", "end", "page-up", "page-down"]),
        ("\x1bOP\x1bOS\x1b[15~\x1b[17~\x1b[21~", ["f1", "f4", "f5", "f6", "f10"]),
        ("\r\n\t\x1b[Z", ["enter", "enter", "tab", "back-tab"]),
        ("\x7f\x08\x15\x0c", ["backspace", "backspace", "ctrl-u", "ctrl-l"]),
        ("\x1b", ["escape"]),
        ("\x1b[99~\x01é", ["é"]),
    ],
)
def test_keys_have_names(sent: str, keys: list[str]) -> None:
    """Whatever a terminal sends for them; what nobody knows is left out."""
    assert keys == keys_of(sent)


@pytest.mark.parametrize("key", ["q", "Q", "f10"])
def test_keys_that_end(key: str) -> None:
    """Those of htop, top and nvitop."""
    assert None is after(key)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (("tab",), "cards"),
        (("tab", "tab"), "nodes"),
        (("tab", "tab", "tab"), "pods"),
        (("back-tab",), "nodes"),
        (("3",), "nodes"),
        (("2", "1"), "pods"),
    ],
)
def test_keys_that_lead_to_another_table(keys: tuple[str, ...], what: str) -> None:
    """Each table begins at its top, in its own order; the filter stays."""
    view = WatchView(sort="LIMIT", inverted=True, filter="x", offset=5)

    assert WatchView(what, filter="x") == after(*keys, view=view)


@pytest.mark.parametrize(
    ("keys", "sort"),
    [
        ((">",), "IDLE"),
        (("<",), "USED"),
        ((",", ","), "CAP"),
        ((".", "f6", "."), "NAMESPACE"),
        (("M",), "USED"),
        (("L", "P"), "SHARE"),
        (("T",), "VERDICT"),
        (("N",), "POD"),
        (("tab", "L"), ""),
        (("tab", "M"), "USED"),
        (("x",), ""),
    ],
)
def test_keys_that_sort(keys: tuple[str, ...], sort: str) -> None:
    """
    From the column by which the table is ordered to the one beside it, round the edges, or by a
    letter to a column that there is.
    """
    view = after(*keys)

    assert view is not None
    assert sort == view.sort


def test_columns_that_are_not_there_are_passed_over() -> None:
    """In one namespace nobody sorts by namespaces."""
    view = after("T", ">", namespace="team-a")

    assert view is not None
    assert "POD" == view.sort


@pytest.mark.parametrize("key", ["I", "R"])
def test_keys_that_invert(key: str) -> None:
    """Twice is not at all, and another column begins in its own order."""
    assert WatchView(inverted=True) == after(key)
    assert WatchView() == after(key, key)
    assert WatchView(sort="USED") == after(key, "M")


@pytest.mark.parametrize(
    ("keys", "offset"),
    [
        (("down", "j"), 2),
        (("j", "up", "k", "k"), 0),
        (("page-down", "page-down", "page-up"), PAGE),
        (("j", "home"), 0),
        (("G",), 10**9),
        (("end", "g"), 0),
    ],
)
def test_keys_that_scroll(keys: tuple[str, ...], offset: int) -> None:
    """Never above the first line."""
    assert WatchView(offset=offset) == after(*keys)


@pytest.mark.parametrize("key", ["/", "\\", "f4"])
def test_keys_are_words_while_a_filter_is_typed(key: str) -> None:
    """Enter keeps what is typed, Escape leaves all of it, and keys without a sign do nothing."""
    assert WatchView(filter="q x", typing=True) == after(key, "q", " ", "x", "up")
    assert WatchView(filter="q") == after(key, "q", "x", "backspace", "enter")
    assert WatchView() == after(key, "q", "escape")
    assert WatchView(filter="b", typing=True) == after(key, "a", "ctrl-u", "b")
    assert WatchView() == after("escape", view=WatchView(filter="kept", offset=3))


@pytest.mark.parametrize("key", ["ctrl-u", "backspace", "x", "escape"])
def test_another_filter_shows_its_first_line(key: str) -> None:
    """Wherever the view was scrolled to, a changed filter begins at the top."""
    view = after(key, view=WatchView(filter="a", typing=True, offset=3))

    assert view is not None
    assert 0 == view.offset


def test_a_filter_has_an_end() -> None:
    """A whole file that somebody pastes is not taken."""
    view = after("/", *["a"] * 300)

    assert view is not None
    assert 200 == len(view.filter)


def test_keys_that_change_how_it_is_shown() -> None:
    """Pause and width; any key leaves the help, but for those that end."""
    assert WatchView(paused=True) == after(" ")
    assert WatchView() == after(" ", " ")
    assert WatchView(wide=True) == after("w")
    assert WatchView(help=True) == after("h")
    assert WatchView() == after("?", "j")
    assert None is after("f1", "q")


def test_the_keys_of_the_footer_are_in_the_help() -> None:
    """What is named in short is explained at length."""
    explained = " ".join(keys for keys, _ in HELP)

    assert [] == [key for key, _ in FOOTER if key not in ("h", "<>", "I") and key not in explained]


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
        ("pods", "CAP", "trainer-0"),
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
        ("cards", "NO POD'S", ["gpu-1", "0"]),
        ("cards", "STATE", ["gpu-1", "1"]),
        ("nodes", "CARDS", ["gpu-1", "3"]),
        ("nodes", "TOTAL", ["gpu-1", "3"]),
        ("nodes", "USED", ["gpu-2", "1"]),
        ("nodes", "SHARE", ["gpu-2", "1"]),
        ("nodes", "COMMITTED", ["gpu-1", "3"]),
        ("nodes", "NO POD'S", ["gpu-2", "1"]),
        ("nodes", "FENCED", ["gpu-1", "3"]),
        ("nodes", "OVER", ["gpu-1", "3"]),
        ("nodes", "AGENT", ["gpu-1", "3"]),
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

    def titles(width: int, *rows: str) -> list[str]:
        return table(columns, rows, Display(width))[0].split()

    assert ["NAME", "A", "B"] == titles(27, "x" * 40)
    assert ["NAME", "A"] == titles(26, "x" * 40)
    assert ["NAME"] == titles(5, "x" * 40)
    assert ["NAME", "A", "B"] == titles(11)
