"""
PURE. What keys do to the view of `top --watch`: those of htop, top and nvitop, where they agree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WHATS: Final = ("pods", "cards", "nodes")
OWN_ORDER: Final = {"pods": "SHARE", "cards": "NODE", "nodes": "NODE"}
"""The column by which `top` orders each table, where nobody has chosen another one."""
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
    return _sorted(_scrolled(_turned(view, key), key, page), key, titles)


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
    place = WHATS.index(view.what)
    chosen = {"tab": place + 1, "back-tab": place - 1, "1": 0, "2": 1, "3": 2}.get(key)
    if chosen is None:
        return view
    what = WHATS[chosen % len(WHATS)]
    return view._replace(what=what, sort="", inverted=False, offset=0)


def _scrolled(view: WatchView, key: str, page: int) -> WatchView:
    offset = view.offset + _STEPS.get(key, 0)
    offset += {"page-up": -page, "page-down": page}.get(key, 0)
    return view._replace(offset=max(_ENDS.get(key, offset), 0))


def _sorted(view: WatchView, key: str, titles: Sequence[str]) -> WatchView:
    if key in ("I", "R"):
        return view._replace(inverted=not view.inverted)
    if key in _SORTS and _SORTS[key] in titles:
        return view._replace(sort=_SORTS[key], inverted=False, offset=0)
    step = {"<": -1, ",": -1, ">": 1, ".": 1, "f6": 1}.get(key)
    if step is None:
        return view
    place = titles.index(view.sort or OWN_ORDER[view.what])
    return view._replace(sort=titles[(place + step) % len(titles)], inverted=False, offset=0)
