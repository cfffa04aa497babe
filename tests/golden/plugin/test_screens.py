"""`top --watch`: what keys do, and the screen full of lines that follows."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpufence import names
from gpufence.quantity import GIB
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
from tests.support.golden import assert_cases
from tests.support.plugin import agent, cluster, pod_row, seen_pod, snapshot, use_row
from tests.support.plugin_cases import odd, odd_cards, silent, typical

FILES = Path(__file__).parent / "values"
PAGE = 10
SIZE, PLAIN, COLOURED = ScreenSize(120, 20), Display(), Display(colour=True)
BORROWER = pod_row(
    use_row(4 * GIB, limit_bytes=6 * GIB, promised_bytes=3 * GIB, borrowed_bytes=GIB)
)
LENDER = pod_row(use_row(GIB, owed_bytes=2 * GIB, lends=True), uid="u2", name="lender")
LENT = cluster(
    seen_pod(annotations={names.BURST: "200%"}), agents=(agent(snapshot(BORROWER, LENDER)),)
)


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
    """Whatever a terminal sends for them; what is unknown is left out."""
    assert keys == keys_of(sent)


SORTED = WatchView(sort="LIMIT", inverted=True, filter="x", offset=5)
TYPED = WatchView(filter="a", typing=True, offset=3)
KEYS: dict[str, tuple[WatchView, str]] = {
    **{keys: (WatchView(), keys) for keys in ("q", "Q", "f10", "space", "w", "h", "x", "I", "R")},
    **{keys: (WatchView(), keys) for keys in ("space space", "? j", "f1 q", "I I", "R R", "I M")},
    **{f"sorted, {keys}": (SORTED, keys) for keys in ("tab", "tab tab", "back-tab", "3", "2 1")},
    **{keys: (WatchView(), keys) for keys in (">", "<", ", ,", ". f6 .", "M", "L P", "T", "N")},
    **{keys: (WatchView(), keys) for keys in ("tab L", "tab M", "tab tab tab")},
    **{keys: (WatchView(), keys) for keys in ("down j", "j up k k", "j home", "G", "end g")},
    "page-down page-down page-up": (WatchView(), "page-down page-down page-up"),
    **{
        f"{key} {keys}": (WatchView(), f"{key} {keys}")
        for key in ("/", "\\", "f4")
        for keys in ("q space x up", "q x backspace enter", "q escape", "a ctrl-u b")
    },
    "a long filter": (WatchView(), f"/ {'a ' * 300}"),
    "a filter is kept, escape": (WatchView(filter="kept", offset=3), "escape"),
    **{
        f"typing at offset 3, {key}": (TYPED, key) for key in ("ctrl-u", "backspace", "x", "escape")
    },
}


def after(
    view: WatchView | None,
    keys: str,
    namespace: str = "",
    found: ClusterAnswers | None = None,
) -> WatchView | None:
    """Press keys one after the other."""
    shown = Shown(found or typical(), namespace, "")
    for key in keys.split():
        assert view is not None
        pressed_key = " " if key == "space" else key
        view = pressed(view, pressed_key, titles_of(view.what, shown), PAGE)
    return view


def told(view: WatchView | None) -> list[str]:
    if view is None:
        return ["  the end"]
    fields = view._asdict()
    usual = WatchView()._asdict()
    return [f"  {name} {value!r}" for name, value in fields.items() if value != usual[name]]


def test_keys_do_what_was_reviewed() -> None:
    """Each table begins in its own order, a changed filter at the top, and only some keys end."""
    cases = {title: told(after(*case)) for title, case in KEYS.items()}

    assert_cases(FILES / "keys.txt", cases)
    assert ["  sort 'POD'"] == told(after(WatchView(), "T >", "team-a"))


def test_columns_that_are_there_for_some_pods_alone_can_be_sorted_by() -> None:
    """
    Where a pod may borrow, the keys lead to the columns of that, and away from one that is gone.
    """
    by_limit, by_loan = WatchView(sort="LIMIT"), WatchView(sort="BORROWED")

    assert WatchView(sort="REQUEST") == after(by_limit, "<", found=LENT)
    assert by_loan == after(WatchView(sort="OWED"), "<", found=LENT)
    assert WatchView(sort="VERDICT") == after(by_loan, "> > >", found=LENT)
    assert WatchView(sort="IDLE") == after(by_loan, ">")


def test_the_keys_of_the_footer_are_in_the_help() -> None:
    """What is named in short is explained at length."""
    explained = " ".join(keys for keys, _ in HELP)

    assert [] == [key for key, _ in FOOTER if key not in ("h", "<>", "I") and key not in explained]


def lines_of(
    view: WatchView | None = None,
    found: ClusterAnswers | None = None,
    size: ScreenSize = SIZE,
    display: Display = PLAIN,
    namespace: str = "",
    note: str = "",
) -> list[str]:
    shown = Shown(found or typical(), namespace, "14:02:03", note)
    return screen(view or WatchView(), shown, size, display)[0]


@pytest.mark.parametrize("what", ["pods", "cards", "nodes"])
@pytest.mark.parametrize("display", [PLAIN, COLOURED], ids=["plain", "coloured"])
def test_no_screen_overflows(what: str, display: Display) -> None:
    """Whatever the window's size, lines are as many and as wide as fit."""
    crowd = replace(odd_cards(), notes=("a" * 300, "b", "c", "d"))
    views = (WatchView(what), WatchView(what, help=True), WatchView(what, wide=True))
    for columns, height in ((10, 1), (10, 20), (30, 2), (60, 3), (90, 5), (250, 20)):
        for found, view in ((found, view) for found in (odd(), crowd) for view in views):
            lines = lines_of(view, found, ScreenSize(columns, height), display)

            assert len(lines) <= height
            assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= columns for line in lines)


NOTED = replace(silent(), notes=tuple("bcd"))
FILTERS = (
    *(("pods", "TRAINER-0"), ("pods", "team-a/notebook"), ("pods", "gpu-1 within")),
    *(("cards", "tesla"), ("nodes", "silent")),
)
ASCII = Display(unicode=False)
NOTHING = WatchView("cards", filter="nothing", paused=True)
SCREENS = {
    "pods": lines_of(),
    "cards, filtered, paused": lines_of(NOTHING, namespace="team-a"),
    "cards, beyond the end": lines_of(WatchView("cards", offset=7)),
    **{f"{width} columns": lines_of(size=ScreenSize(width, 20))[1:3] for width in (95, 80, 60, 40)},
    "wide": lines_of(WatchView(wide=True), size=ScreenSize(250, 20)),
    "by USED": lines_of(WatchView(sort="USED"), odd(), display=ASCII),
    "by USED, inverted": lines_of(WatchView(sort="USED", inverted=True), odd()),
    **{
        f"{what} with {words}": lines_of(
            WatchView(what, filter=words), typical() if what == "pods" else odd_cards()
        )[:1]
        for what, words in FILTERS
    },
    "the last lines": lines_of(WatchView(offset=10**9), odd(), ScreenSize(120, 6)),
    "notes": lines_of(found=NOTED)[-4:],
    "notes, and a newer one": lines_of(found=NOTED, note="a")[-4:],
    "typing": lines_of(WatchView(filter="abc", typing=True))[-1:],
    "typing much": lines_of(WatchView(filter="abc" * 60 + "\x1b[2J", typing=True))[-1:],
    "help": lines_of(WatchView(help=True)),
    "colours": [ascii(lines_of(display=COLOURED)[-1])],
}


def first_lines(what: str, found: ClusterAnswers) -> Iterator[str]:
    """Name what stands first, sorted by each column."""
    for title in titles_of(what, Shown(found, "", "")):
        first = lines_of(WatchView(what, sort=title), found)[2].split()[:2]
        yield f"  {title}: {' '.join(first)}"


def test_screens_are_those_reviewed() -> None:
    """Title, columns, order, notes and keys; the largest and what is wrong first, unknown last."""
    seen = {"pods": typical(), "cards": odd_cards(), "nodes": odd_cards()}
    sorts = {f"{what} by column": first_lines(what, found) for what, found in seen.items()}
    sorts["pods that borrow by column"] = first_lines("pods", LENT)

    assert_cases(FILES / "screens.txt", {**SCREENS, **sorts})


def test_the_last_lines_are_in_view_at_the_end() -> None:
    """A view scrolled beyond them comes back at once; a page is what is seen, at least a line."""
    far = WatchView(offset=10**9)

    assert 8 == screen(far, Shown(odd(), "", "14:02:03"), ScreenSize(120, 6), PLAIN)[1].offset
    assert (19, 1) == (page_of(ScreenSize(80, 24)), page_of(ScreenSize(80, 3)))


def test_lines_are_cut_where_the_terminal_ends() -> None:
    """Colours take no place and do not leak; East Asian characters take two."""
    red = "\x1b[31mabc\x1b[0m"

    assert ["abc", "ab", "漢"] == [clipped("abc", 3), clipped("abc", 2), clipped("漢字", 3)]
    assert "\x1b[31mab\x1b[0m" == clipped(red, 2)
    assert (3, 5) == (width_of(red), width_of("a漢字"))


@pytest.mark.parametrize(
    ("width", "name", "titles"),
    [
        (27, "x" * 40, ["NAME", "A", "B"]),
        (26, "x" * 40, ["NAME", "A"]),
        (5, "x" * 40, ["NAME"]),
        (11, "", ["NAME", "A", "B"]),
    ],
)
def test_a_column_is_given_up_only_for_want_of_room(
    width: int, name: str, titles: list[str]
) -> None:
    """Names count for as little as they can be shortened to."""
    columns = [
        Field[str]("name", str, "NAME", shrinks=True),
        Field[str]("a", lambda _: "1", "A", spare=2),
        Field[str]("b", lambda _: "2" * 10, "B", spare=1),
    ]

    assert titles == table(columns, [name] if name else [], Display(width))[0].split()
