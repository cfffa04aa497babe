"""
PURE. Use against limit over time, drawn with characters: what is held within the limit and above
it, the limit, the use above which time counts, and when each was passed.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.errors import InvalidError
from gpufence.quantity import MIB
from gpufence.text import printable
from gpufence.times import read_moment, write_moment
from kubectl_gpufence.view import WIDTH, Cell, Tone, allowed, coloured, held

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpufence.records import Moment, Record, Threshold
    from kubectl_gpufence.view import Display

ROWS: Final = 10
_LABEL: Final = 9  # places of an amount at the left
_MOST_COLUMNS: Final = 90
_LEAST_COLUMNS: Final = 20
_LEAST_SPAN: Final = 10
_MARKS: Final = {"limit": "L", "evict": "E"}
_TIME: Final = slice(11, 19)
_MOST_TIME: Final = 20  # characters of what is no time


class Brush(NamedTuple):
    """The characters of a chart."""

    within: str
    above: str
    limit: str
    threshold: str
    axis: str
    corner: str


_UNICODE: Final = Brush("█", "▓", "─", "╌", "│", "└")
_ASCII: Final = Brush("#", "%", "-", "=", "|", "+")


class _Column(NamedTuple):
    """The most that was held in one column, and its limit, in MiB."""

    used: int | None
    limit: int | None


def chart(record: Record, display: Display) -> list[str]:
    """Draw a record's course; nothing where it has none in which anything is known."""
    known = [each.used for each in record.course if each.used is not None]
    if not known:
        return []
    brush = _UNICODE if display.unicode else _ASCII
    width = min(max((display.width or WIDTH) - _LABEL - 3, _LEAST_COLUMNS), _MOST_COLUMNS)
    columns = _columns(record.course, width)
    evict = _threshold(record, "evict")
    bounds = [each.limit for each in columns if each.limit is not None]
    top = max(*known, *bounds, evict or 0, 1)
    lines = [_row(row, top, columns, evict, brush, display) for row in range(ROWS - 1, -1, -1)]
    dash = "─" if display.unicode else "-"
    return [
        *lines,
        f"{'0':>{_LABEL}} {brush.corner}{dash * width}",
        f"{'':{_LABEL + 2}}{_marks(record, width)}".rstrip(),
        f"{'':{_LABEL + 2}}{_times(record, width)}",
        *(f"{'':{_LABEL + 2}}{line}" for line in _legend(record, brush, evict)),
    ]


def clock(at: str, seconds_before: float = 0.0) -> str:
    """Return the time of day in UTC, so long before a moment; the moment itself if it is none."""
    try:
        return write_moment(read_moment(at, "at") - seconds_before)[_TIME]
    except InvalidError:
        return printable(at, _MOST_TIME)


def _columns(course: Sequence[Moment], width: int) -> list[_Column]:
    """Return for each column the most of its time, or what was there before it."""
    span = _span(course)
    found: list[_Column] = []
    before = _Column(None, None)
    place = 0
    for column in range(width):
        until = span - (column + 1) * span / width
        inside = []
        while place < len(course) and (course[place].age >= until or column == width - 1):
            inside.append(course[place])
            place += 1
        if inside:
            used = [each.used for each in inside if each.used is not None]
            before = _Column(max(used, default=None), inside[-1].limit)
        found.append(before)
    return found


def _row(
    row: int,
    top: int,
    columns: Sequence[_Column],
    evict: int | None,
    brush: Brush,
    display: Display,
) -> str:
    """Draw one row, with the amount at its left where it is one of those that matter."""
    cells = [_cell(row, top, column, evict, brush) for column in columns]
    drawn = (
        coloured(Cell("".join(cell.text for cell in part), tone), display)
        for tone, part in groupby(cells, key=lambda cell: cell.tone)
    )
    return f"{_label(row, top, columns, evict):>{_LABEL}} {brush.axis}{''.join(drawn)}".rstrip()


def _cell(row: int, top: int, column: _Column, evict: int | None, brush: Brush) -> Cell:
    """Fill it where use came so high: where a threshold lies, only if use was above that."""
    used, limit = column.used or 0, column.limit
    at_limit = limit is not None and row == _row_of(limit, top)
    at_evict = evict is not None and row == _row_of(evict, top)
    least = (limit if at_limit else evict if at_evict else None) or row * top // ROWS
    if used > least:
        over = limit is not None and used > limit and row >= _row_of(limit, top)
        return Cell(brush.above, Tone.BAD) if over else Cell(brush.within, Tone.GOOD)
    if at_limit:
        return Cell(brush.limit)
    return Cell(brush.threshold, Tone.FAINT) if at_evict else Cell(" ")


def _label(row: int, top: int, columns: Sequence[_Column], evict: int | None) -> str:
    limit = columns[-1].limit
    if limit is not None and row == _row_of(limit, top):
        return _amount(limit)
    if evict is not None and row == _row_of(evict, top):
        return _amount(evict)
    return _amount(top) if row == ROWS - 1 else ""


def _row_of(amount: int, top: int) -> int:
    """Return the row in which an amount lies."""
    return min(amount * ROWS // top, ROWS - 1)


def _amount(mebibytes: int) -> str:
    text = f"{mebibytes}Mi"
    return text if len(text) <= _LABEL else f"{mebibytes >> 10}Gi"[:_LABEL]


def _marks(record: Record, width: int) -> str:
    """Set a letter below the moment at which each threshold was passed, and one at the end."""
    span, marks = _span(record.course), [" "] * width
    for threshold in record.thresholds:
        if threshold.name in _MARKS and threshold.passed_seconds is not None:
            place = int((span - min(threshold.passed_seconds, span)) * width / span)
            place = min(place, width - len(_MARKS))
            marks[place + (marks[place] != " ")] = _MARKS[threshold.name]
    marks[-1] = "X"
    return "".join(marks)


def _times(record: Record, width: int) -> str:
    first = clock(record.at, _span(record.course))
    last = clock(record.at)
    return f"{first}{last:>{max(width - len(first), len(last) + 1)}}"


def _legend(record: Record, brush: Brush, evict: int | None) -> Iterator[str]:
    yield f"{brush.within} held   {brush.above} above the limit"
    if record.limit_bytes is not None:
        yield f"{brush.limit} limit {allowed(record.limit_bytes)}{_passed(record, 'limit')}"
    if record.request_bytes is not None:
        yield f"  request {allowed(record.request_bytes)}, above which it borrows"
    if evict is not None:
        bound = held(evict * MIB)
        yield f"{brush.threshold} time counts above {bound}{_passed(record, 'evict')}"
    yield f"X {clock(record.at)} {printable(record.kind, _MOST_TIME)}"


def _passed(record: Record, name: str) -> str:
    found = _of(record, name)
    if found is None or found.passed_seconds is None:
        return ""
    return f"   {_MARKS[name]} {clock(record.at, found.passed_seconds)} passed"


def _threshold(record: Record, name: str) -> int | None:
    found = _of(record, name)
    return None if found is None else found.bytes // MIB


def _of(record: Record, name: str) -> Threshold | None:
    return next((each for each in record.thresholds if each.name == name), None)


def _span(course: Sequence[Moment]) -> int:
    return max(course[0].age, _LEAST_SPAN)
