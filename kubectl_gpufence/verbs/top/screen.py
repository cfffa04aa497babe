"""
PURE. `top --watch`: what keys do to the view, those of htop, top and nvitop where they agree; and
the screen full of lines that it makes: a title, the table as far as it fits, and the keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from gpufence.text import printable
from kubectl_gpufence.pod_lines import SHEETS
from kubectl_gpufence.view import (
    WIDTH,
    Cell,
    Display,
    Tone,
    clipped,
    coloured,
    columns_of,
    counted,
    said_of,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_gpufence.cluster_view import ClusterAnswers
    from kubectl_gpufence.view import Field

L = TypeVar("L")

FOOTER: Final = (
    ("q", "quit"),
    ("/", "filter"),
    ("<>", "sort"),
    ("I", "invert"),
    ("Tab", "pods, cards, nodes"),
    ("Space", "pause"),
    ("h", "help"),
)
HELP: Final = (
    ("Tab, 1 2 3", "pods, cards, nodes"),
    ("< >, F6", "sort by the column before, behind; I inverts"),
    ("P M L T N", "pods by share, used, limit, time over, name"),
    ("/, F4", "show what has all these words in it; Enter keeps them, Esc shows all"),
    ("arrows, j k", "scroll; page keys, Home, End, g and G"),
    ("w", "all columns, which a wide terminal has room for"),
    ("Space", "pause: look on, but leave what is shown"),
    ("r, F5", "look at once"),
    ("q, F10, Ctrl-C", "quit; Ctrl-Z leaves for a while"),
)
_SORTS: Final = {"P": "SHARE", "M": "USED", "L": "LIMIT", "T": "VERDICT", "N": "POD"}
_STEPS: Final = {"up": -1, "k": -1, "down": 1, "j": 1}
_ENDS: Final = {"home": 0, "g": 0, "end": 10**9, "G": 10**9}
_MOST_FILTER = 200
_ESCAPED: Final = {
    "A": "up",
    "B": "down",
    "H": "home",
    "F": "end",
    "Z": "back-tab",
    "P": "f1",
    "S": "f4",
    "1~": "home",
    "7~": "home",
    "4~": "end",
    "8~": "end",
    "5~": "page-up",
    "6~": "page-down",
    "11~": "f1",
    "14~": "f4",
    "15~": "f5",
    "17~": "f6",
    "21~": "f10",
}
_PLAIN: Final = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x0c": "ctrl-l",
    "\x15": "ctrl-u",
    "\x1b": "escape",
}
_KEY = re.compile(r"\x1b(?:\[|O)([0-9;]*[A-Za-z~])|(.)", re.DOTALL)
_REVERSE: Final = "7"
_MOST_NOTES: Final = 3
_FEW: Final = 3  # lines below which there is room for the table alone


def keys_of(text: str) -> list[str]:
    """Name the keys that a terminal sends as this text; those that nobody knows are left out."""
    named = (
        _ESCAPED.get(match[1], "") if match[1] else _PLAIN.get(match[2], match[2])
        for match in _KEY.finditer(text)
    )
    return [key for key in named if key and (len(key) > 1 or key.isprintable())]


class WatchView(NamedTuple):
    """
    What somebody has chosen to see. Without a `sort` the lines are in the order of `top`; `typing`
    while the filter is being written; `offset` is the first line that is shown.
    """

    what: str = "pods"
    sort: str = ""
    inverted: bool = False
    filter: str = ""
    typing: bool = False
    offset: int = 0
    paused: bool = False
    wide: bool = False
    help: bool = False


def pressed(view: WatchView, key: str, titles: Sequence[str], page: int) -> WatchView | None:
    """
    Return the view after a key, None at the end. `titles` are the columns that the table can be
    sorted by; `page` is how many lines are seen at once.
    """
    if view.typing:
        return _typed(view, key)
    if key in ("q", "Q", "f10"):
        return None
    if view.help or key in ("h", "?", "f1"):
        return view._replace(help=not view.help)
    if key in ("/", "\\", "f4"):
        return view._replace(typing=True)
    if key == "escape":
        return view._replace(filter="", offset=0)
    if key == " ":
        return view._replace(paused=not view.paused)
    if key == "w":
        return view._replace(wide=not view.wide)
    return _sorted_by(_scrolled(_turned(view, key), key, page), key, titles)


def _typed(view: WatchView, key: str) -> WatchView:
    if key == "enter":
        return view._replace(typing=False)
    if key == "escape":
        return view._replace(typing=False, filter="", offset=0)
    if key == "backspace":
        return view._replace(filter=view.filter[:-1], offset=0)
    if key == "ctrl-u":
        return view._replace(filter="", offset=0)
    if len(key) == 1 and key.isprintable() and len(view.filter) < _MOST_FILTER:
        return view._replace(filter=view.filter + key, offset=0)
    return view


def _turned(view: WatchView, key: str) -> WatchView:
    """Go to another table, each of which begins in its own order."""
    place = list(SHEETS).index(view.what)
    chosen = {"tab": place + 1, "back-tab": place - 1, "1": 0, "2": 1, "3": 2}.get(key)
    if chosen is None:
        return view
    what = list(SHEETS)[chosen % len(SHEETS)]
    return view._replace(what=what, sort="", inverted=False, offset=0)


def _scrolled(view: WatchView, key: str, page: int) -> WatchView:
    offset = view.offset + _STEPS.get(key, 0)
    offset += {"page-up": -page, "page-down": page}.get(key, 0)
    return view._replace(offset=max(_ENDS.get(key, offset), 0))


def _sorted_by(view: WatchView, key: str, titles: Sequence[str]) -> WatchView:
    if key in ("I", "R"):
        return view._replace(inverted=not view.inverted)
    if key in _SORTS and _SORTS[key] in titles:
        return view._replace(sort=_SORTS[key], inverted=False, offset=0)
    step = {"<": -1, ",": -1, ">": 1, ".": 1, "f6": 1}.get(key)
    if step is None:
        return view
    by = view.sort if view.sort in titles else SHEETS[view.what].order
    place = titles.index(by)
    return view._replace(sort=titles[(place + step) % len(titles)], inverted=False, offset=0)


class ScreenSize(NamedTuple):
    columns: int
    lines: int


class Shown(NamedTuple):
    """What a screen is made of beside the view: what was seen, of which namespace, and when."""

    cluster: ClusterAnswers
    namespace: str
    at: str
    note: str = ""


def screen(
    view: WatchView, shown: Shown, size: ScreenSize, display: Display
) -> tuple[list[str], WatchView]:
    """Return as many lines as fit, and the view with its offset where there is something to see."""
    display = Display(size.columns, display.colour, display.unicode)
    foot = _foot(view, display)
    body = size.lines - 2 if size.lines >= _FEW else size.lines
    if view.help:
        lines = [f"  {keys:16}{text}" for keys, text in HELP]
        head = coloured(Cell("keys of kubectl gpufence top --watch", Tone.STRONG), display)
        return _cut([head, *lines[:body], foot], size), view
    rows, total, many = _rows(view, shown, display)
    notes = [coloured(Cell(printable(note), Tone.WARN), display) for note in _notes(shown)]
    room = max(body - len(notes) - 1, 1)
    offset = max(min(view.offset, len(rows) - 1 - room), 0)
    lines = [rows[0], *rows[1 + offset : 1 + offset + room]]
    lines += [""] * (body - len(notes) - len(lines))
    if size.lines < _FEW:
        return _cut(lines[:body], size), view._replace(offset=offset)
    count = counted(total, view.what[:-1]) if total == many else f"{total} of {many} {view.what}"
    below = f", from {offset + 1}" if offset else ""
    title = _title(view, shown, f"{count}{below}", display)
    return _cut([title, *lines, *notes, foot], size), view._replace(offset=offset)


def titles_of(what: str, shown: Shown) -> tuple[str, ...]:
    """Return by which columns a table can be sorted, from left to right: those it has just now."""
    sheet = SHEETS[what]
    fields = said_of(sheet.fields, sheet.lines(shown.cluster, shown.namespace))
    return tuple(item.title for item in columns_of(fields, without=_left_out(shown.namespace)))


def page_of(size: ScreenSize) -> int:
    """Return by how many lines a page key scrolls."""
    return max(size.lines - _MOST_NOTES - 2, 1)


def _rows(view: WatchView, shown: Shown, display: Display) -> tuple[list[str], int, int]:
    """Return the table, how many lines it has, and how many there are without the filter."""
    sheet = SHEETS[view.what]
    every = sheet.lines(shown.cluster, shown.namespace)
    wanted = view.filter.lower().split()
    lines = [line for line in every if _has(sheet.words(line), wanted)]
    title = view.sort or SHEETS[view.what].order
    by = next(item for item in sheet.fields if item.title == title)
    largest_first = by.largest_first != view.inverted
    if view.sort or view.inverted:
        lines = _sorted(lines, by, largest_first=largest_first)
    columns = columns_of(sheet.fields, wide=view.wide, without=_left_out(shown.namespace))
    if view.wide:  # the rest is clipped
        columns = [item._replace(spare=0) for item in columns]
    marked = f"{title}{_mark(largest_first=largest_first, display=display)}"
    columns = [item._replace(title=marked) if item.title == title else item for item in columns]
    return table(columns, lines, display), len(lines), len(every)


def _mark(*, largest_first: bool, display: Display) -> str:
    down, up = ("▼", "▲") if display.unicode else ("v", "^")
    return down if largest_first else up


def _sorted(lines: Sequence[L], by: Field[L], *, largest_first: bool) -> list[L]:
    """Sort lines; those of which it is not known stand behind the others."""
    known = [line for line in lines if by.rank(line) is not None]
    unknown = [line for line in lines if by.rank(line) is None]
    return [*sorted(known, key=by.rank, reverse=largest_first), *unknown]


def _left_out(namespace: str) -> tuple[str, ...]:
    return ("NAMESPACE",) if namespace else ()


def _has(text: str, wanted: Sequence[str]) -> bool:
    lowered = text.lower()
    return all(word in lowered for word in wanted)


def _title(view: WatchView, shown: Shown, count: str, display: Display) -> str:
    where = f"namespace {shown.namespace}" if shown.namespace else "all namespaces"
    parts = [f"gpufence top {view.what}", where, count, shown.at]
    if view.filter and not view.typing:
        parts.append(f"with {printable(view.filter)}")
    if view.paused:
        parts.append("PAUSED")
    return coloured(Cell("  ".join(parts), Tone.STRONG), display)


def _notes(shown: Shown) -> list[str]:
    notes = [*filter(None, (shown.note,)), *shown.cluster.notes]
    rest = len(notes) - _MOST_NOTES
    if rest <= 0:
        return notes
    return [*notes[: _MOST_NOTES - 1], f"{rest + 1} notes more: kubectl gpufence top shows them"]


def _foot(view: WatchView, display: Display) -> str:
    """Write the keys, or what is being typed, with its end in sight."""
    if view.typing:
        text, width = f"filter: {printable(view.filter)}_", display.width or WIDTH
        return text if len(text) <= width else f"...{text[3 - width :]}"
    if view.help:
        return "any key goes back"
    if not display.colour:
        return "  ".join(f"{key} {text}" for key, text in FOOTER)
    return "  ".join(f"\x1b[{_REVERSE}m {key} \x1b[0m {text}" for key, text in FOOTER)


def _cut(lines: Sequence[str], size: ScreenSize) -> list[str]:
    return [clipped(line, size.columns) for line in lines[: size.lines]]
