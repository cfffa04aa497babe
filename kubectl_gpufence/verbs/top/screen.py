"""
PURE. `top --watch` as a screen full of lines: a title, the table as far as it fits, and the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from gpufence.text import printable
from kubectl_gpufence.card_lines import CARD_FIELDS, NODE_FIELDS, card_lines, node_lines
from kubectl_gpufence.pod_lines import POD_FIELDS, pod_lines, verdict_on
from kubectl_gpufence.verbs.top.keys import FOOTER, HELP, OWN_ORDER
from kubectl_gpufence.view import (
    WIDTH,
    Cell,
    Display,
    Tone,
    clipped,
    coloured,
    columns_of,
    counted,
    narrowed,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kubectl_gpufence.card_lines import CardLine, NodeLine
    from kubectl_gpufence.cluster_view import ClusterAnswers
    from kubectl_gpufence.pod_lines import PodLine
    from kubectl_gpufence.verbs.top.keys import WatchView
    from kubectl_gpufence.view import Field

L = TypeVar("L")

_REVERSE: Final = "7"
_MOST_NOTES: Final = 3
_FEW: Final = 3  # lines below which there is room for the table alone


class ScreenSize(NamedTuple):
    columns: int
    lines: int


class Shown(NamedTuple):
    """What a screen is made of beside the view: what was seen, of which namespace, and when."""

    cluster: ClusterAnswers
    namespace: str
    at: str
    note: str = ""


class Sheet(NamedTuple, Generic[L]):
    """A table: its lines, what is said of each, and the words that a filter looks at."""

    lines: Sequence[L]
    fields: Sequence[Field[L]]
    words: Callable[[L], str]


_FIELDS: Final[Mapping[str, Sequence[Field[Any]]]] = {
    "pods": POD_FIELDS,
    "cards": CARD_FIELDS,
    "nodes": NODE_FIELDS,
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
    return tuple(item.title for item in columns_of(_FIELDS[what], without=_left_out(namespace)))


def page_of(size: ScreenSize) -> int:
    """Return by how many lines a page key scrolls."""
    return max(size.lines - _MOST_NOTES - 2, 1)


def _rows(view: WatchView, shown: Shown, display: Display) -> tuple[list[str], int, int]:
    """Return the table, how many lines it has, and how many there are without the filter."""
    sheet = _sheet(view.what, shown)
    wanted = view.filter.lower().split()
    lines = [line for line in sheet.lines if _has(sheet.words(line), wanted)]
    title = view.sort or OWN_ORDER[view.what]
    by = next(item for item in sheet.fields if item.title == title)
    largest_first = by.largest_first != view.inverted
    if view.sort or view.inverted:
        lines = _sorted(lines, by, largest_first=largest_first)
    columns = columns_of(sheet.fields, wide=view.wide, without=_left_out(shown.namespace))
    if not view.wide:
        width = (display.width or WIDTH) - 1  # the mark
        columns = narrowed(columns, lines, width, display)
    marked = f"{title}{_mark(largest_first=largest_first, display=display)}"
    columns = [item._replace(title=marked) if item is by else item for item in columns]
    return table(columns, lines, display), len(lines), len(sheet.lines)


def _mark(*, largest_first: bool, display: Display) -> str:
    down, up = ("▼", "▲") if display.unicode else ("v", "^")
    return down if largest_first else up


def _sheet(what: str, shown: Shown) -> Sheet[Any]:
    if what == "cards":
        return Sheet(card_lines(shown.cluster), CARD_FIELDS, _words_of_card)
    if what == "nodes":
        return Sheet(node_lines(shown.cluster), NODE_FIELDS, _words_of_node)
    return Sheet(pod_lines(shown.cluster, shown.namespace), POD_FIELDS, _words_of_pod)


def _sorted(lines: Sequence[L], by: Field[L], *, largest_first: bool) -> list[L]:
    """Sort lines; those of which it is not known stand behind the others."""
    known = [line for line in lines if by.rank(line) is not None]
    unknown = [line for line in lines if by.rank(line) is None]
    return [*sorted(known, key=by.rank, reverse=largest_first), *unknown]


def _left_out(namespace: str) -> tuple[str, ...]:
    return ("NAMESPACE",) if namespace else ()


def _words_of_pod(line: PodLine) -> str:
    known = f"{line.namespace}/{line.name} {line.node} {line.owner} {line.mode}"
    return f"{known} {line.dialect} {verdict_on(line).text}"


def _words_of_card(line: CardLine) -> str:
    return f"{line.node} {line.card.model} {line.card.uuid} {line.state}"


def _words_of_node(line: NodeLine) -> str:
    return f"{line.node} {line.agent.text}"


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
