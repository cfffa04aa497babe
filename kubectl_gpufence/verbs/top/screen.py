"""
PURE. `top --watch` as a screen full of lines: a title, the table as far as it fits, and the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from gpufence.text import printable
from kubectl_gpufence.card_lines import card_columns, card_lines, node_columns, node_lines
from kubectl_gpufence.pod_lines import pod_columns, pod_lines, verdict_on
from kubectl_gpufence.table import (
    WIDTH,
    Cell,
    Display,
    Tone,
    clipped,
    coloured,
    counted,
    narrowed,
    table,
)
from kubectl_gpufence.verbs.top.keys import FOOTER, HELP, OWN_ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kubectl_gpufence.card_lines import CardLine, NodeLine
    from kubectl_gpufence.cluster_view import Scene
    from kubectl_gpufence.pod_lines import PodLine
    from kubectl_gpufence.table import Column
    from kubectl_gpufence.verbs.top.keys import WatchView

L = TypeVar("L")
Order = tuple[bool, "Callable[[L], Any]"]

_REVERSE: Final = "7"
_MOST_NOTES: Final = 3
_FEW: Final = 3  # lines below which there is room for the table alone


class ScreenSize(NamedTuple):
    columns: int
    lines: int


class Shown(NamedTuple):
    """What a screen is made of beside the view: what was seen, of which namespace, and when."""

    scene: Scene
    namespace: str
    at: str
    note: str = ""


class SortableTable(NamedTuple, Generic[L]):
    """
    A table: its lines, its columns, by what each can be sorted and whether the largest is first;
    `dispensable` columns go, in this order, where there is no room.
    """

    lines: Sequence[L]
    columns: Sequence[Column[L]]
    orders: Mapping[str, Order[L]]
    dispensable: Sequence[str]
    words: Callable[[L], str]


def _share(used: int | None, whole: int | None) -> float | None:
    return None if used is None or not whole else used / whole


_PODS: Final[Mapping[str, Order[PodLine]]] = {
    "NAMESPACE": (False, lambda line: line.namespace),
    "POD": (False, lambda line: line.name),
    "NODE": (False, lambda line: line.node or None),
    "CARD": (False, lambda line: line.card.index if line.card else None),
    "LIMIT": (True, lambda line: line.limit_bytes),
    "TOLD": (True, lambda line: line.told_bytes),
    "USED": (True, lambda line: line.used_bytes),
    "SHARE": (True, lambda line: _share(line.used_bytes, line.limit_bytes)),
    "IDLE": (True, lambda line: line.activity.idle_seconds if line.activity else None),
    "VERDICT": (True, lambda line: line.use.over_seconds if line.use else None),
}
_CARDS: Final[Mapping[str, Order[CardLine]]] = {
    "NODE": (False, lambda line: line.node),
    "CARD": (False, lambda line: line.card.index),
    "MODEL": (False, lambda line: line.card.model or None),
    "TOTAL": (True, lambda line: line.card.total_bytes),
    "USED": (True, lambda line: line.card.used_bytes),
    "SHARE": (True, lambda line: _share(line.card.used_bytes, line.card.total_bytes)),
    "COMMITTED": (True, lambda line: line.committed_bytes),
    "NOBODY'S": (True, lambda line: line.card.unattributed_bytes),
    "STATE": (False, lambda line: (line.state == "ok", line.state)),
}
_NODES: Final[Mapping[str, Order[NodeLine]]] = {
    "NODE": (False, lambda line: line.node),
    "CARDS": (True, lambda line: line.cards),
    "TOTAL": (True, lambda line: line.total_bytes),
    "USED": (True, lambda line: line.used_bytes),
    "SHARE": (True, lambda line: _share(line.used_bytes, line.total_bytes)),
    "COMMITTED": (True, lambda line: line.committed_bytes),
    "NOBODY'S": (True, lambda line: line.unattributed_bytes),
    "FENCED": (True, lambda line: line.fenced),
    "OVER": (True, lambda line: line.over),
    "AGENT": (False, lambda line: (line.agent.tone is Tone.GOOD, line.agent.text)),
}


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


def titles_of(what: str, namespace: str) -> tuple[str, ...]:
    """Return by which columns a table can be sorted, from left to right."""
    orders: Mapping[str, object] = {"pods": _PODS, "cards": _CARDS, "nodes": _NODES}[what]
    return tuple(title for title in orders if title != "NAMESPACE" or not namespace)


def page_of(size: ScreenSize) -> int:
    """Return by how many lines a page key scrolls."""
    return max(size.lines - _MOST_NOTES - 2, 1)


def _rows(view: WatchView, shown: Shown, display: Display) -> tuple[list[str], int, int]:
    """Return the table, how many lines it has, and how many there are without the filter."""
    scene = shown.scene
    if view.what == "cards":
        columns = card_columns(display, wide=view.wide)
        dispensable = ("NOBODY'S", "MODEL", "COMMITTED", "STATE", "SHARE")
        return _table(
            SortableTable(
                card_lines(scene),
                columns,
                _CARDS,
                dispensable,
                lambda line: f"{line.node} {line.card.model} {line.card.uuid} {line.state}",
            ),
            view,
            display,
        )
    if view.what == "nodes":
        node_titles = ("NOBODY'S", "FENCED", "COMMITTED", "CARDS", "SHARE", "AGENT")
        return _table(
            SortableTable(
                node_lines(scene),
                node_columns(display, wide=view.wide),
                _NODES,
                node_titles,
                lambda line: f"{line.node} {line.agent.text}",
            ),
            view,
            display,
        )
    return _table(
        SortableTable(
            pod_lines(scene, shown.namespace),
            pod_columns(display, namespaces=not shown.namespace, wide=view.wide),
            _PODS,
            ("NODE", "IDLE", "CARD", "TOLD", "NAMESPACE", "SHARE", "LIMIT"),
            _words,
        ),
        view,
        display,
    )


def _words(line: PodLine) -> str:
    known = f"{line.namespace}/{line.name} {line.node} {line.owner} {line.mode}"
    return f"{known} {line.dialect} {verdict_on(line).text}"


def _table(
    listed: SortableTable[L], view: WatchView, display: Display
) -> tuple[list[str], int, int]:
    wanted = view.filter.lower().split()
    lines = [line for line in listed.lines if _has(listed.words(line), wanted)]
    by = view.sort or OWN_ORDER[view.what]
    if view.sort or view.inverted:
        largest_first, key = listed.orders[by]
        known = [line for line in lines if key(line) is not None]
        unknown = [line for line in lines if key(line) is None]
        lines = [*sorted(known, key=key, reverse=largest_first != view.inverted), *unknown]
    columns = list(listed.columns)
    if not view.wide:
        width = (display.width or WIDTH) - 1  # the mark
        columns = narrowed(columns, lines, width, listed.dispensable)
    down = "▼" if display.unicode else "v"
    up = "▲" if display.unicode else "^"
    mark = down if listed.orders[by][0] != view.inverted else up
    marked = [
        column._replace(title=f"{column.title}{mark}") if column.title == by else column
        for column in columns
    ]
    return table(marked, lines, display), len(lines), len(listed.lines)


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
    notes = [*filter(None, (shown.note,)), *shown.scene.notes]
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
