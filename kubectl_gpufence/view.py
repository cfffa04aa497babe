"""
PURE. Rows, amounts and sentences as people and programs read them.

What a verb says of its rows is written once, as fields, and shown as table, JSON or CSV. A dash
stands for what does not apply, a question mark for what is not known: unknown is never zero. Every
cell and sentence is made printable here, so that no name or annotation steers a terminal, and
fitted to where it is shown: colours take no places there, letters of East Asia two.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from gpufence.quantity import GIB, write_bytes
from gpufence.text import limit_mebibytes, mebibytes, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


R = TypeVar("R")

WIDTH: Final = 100
UNKNOWN: Final = "?"
NOT_THERE: Final = "-"

_GAP: Final = "  "
_BAR_CELLS = 6
_LEAST_NAME = 12
_PLAIN: Final = "\x1b[0m"
_COLOURED: Final = re.compile(r"(\x1b\[[0-9;]*m)|(.)", re.DOTALL)


class Tone(Enum):
    """How a word is shown on a terminal; the values are the codes of ECMA-48."""

    PLAIN = ""
    GOOD = "32"
    WARN = "33"
    BAD = "31"
    FAINT = "2"
    STRONG = "1"


@dataclass(frozen=True, slots=True)
class Display:
    """
    What the place can show that the text goes to. A width of None is that of a file or a pipe,
    where nothing is shortened: somebody may search it.
    """

    width: int | None = None
    colour: bool = False
    unicode: bool = True


class Cell(NamedTuple):
    text: str
    tone: Tone = Tone.PLAIN


class Bar(NamedTuple):
    """A share as a bar with its percentage; on a terminal of less than `least_width` that alone."""

    used: int | None
    limit: int | None
    least_width: int = 0

    def cell(self, display: Display) -> Cell:
        """Draw it; empty where one of both is unknown."""
        full, empty = ("█", "░") if display.unicode else ("#", ".")
        share = percent(self.used, self.limit)
        if self.used is None or not self.limit:
            return Cell(share, Tone.FAINT)
        tone = share_tone(self.used, self.limit)
        if display.width is not None and display.width < self.least_width:
            return Cell(share, tone)
        cells = min(-(-self.used * _BAR_CELLS // self.limit), _BAR_CELLS)
        return Cell(f"{full * cells}{empty * (_BAR_CELLS - cells)} {share}", tone)


class Field(NamedTuple, Generic[R]):
    """
    One thing that every row says: `value` to programs under its `name`, `cell` to people below its
    `title`, which is the value where nothing else is said. Without a name, or a title, it is not
    for those.

    `right` is for numbers, `shrinks` for names that may lose their middle on a terminal. `wide`
    ones are shown on request, in that order behind the others, `spare` ones go first, in theirs,
    where there is no room. Rows are sorted by `order`, or by the value. With `some` it is there
    only if that holds for any row.
    """

    name: str = ""
    value: Callable[[R], object] | None = None
    title: str = ""
    cell: Callable[[R], Cell | Bar | str] | None = None
    right: bool = False
    shrinks: bool = False
    wide: int = 0
    spare: int = 0
    order: Callable[[R], Any] | None = None
    largest_first: bool = False
    in_csv: bool = True
    some: Callable[[R], object] | None = None

    def rank(self, row: R) -> Any:  # noqa: ANN401 (whatever can be compared)
        """Return by what rows are sorted, None where it is not known."""
        if self.order is not None:
            return self.order(row)
        value = None if self.value is None else self.value(row)
        return None if value == "" else value

    def shown(self, row: R, display: Display) -> Cell:
        """Return what people see of a row."""
        if self.cell is not None:
            content = self.cell(row)
        else:
            value = None if self.value is None else self.value(row)
            content = UNKNOWN if value is None else str(value) or NOT_THERE
        if isinstance(content, Bar):
            content = content.cell(display)
        text, tone = content if isinstance(content, Cell) else (content, Tone.PLAIN)
        return Cell(printable(text), tone)


class Rows(NamedTuple, Generic[R]):
    """
    An answer that is rows: what programs call them, what is said where there are none, and notes
    about what is missing; `about` is what programs read beside them, `asides` are notes for people.
    """

    name: str
    fields: Sequence[Field[R]]
    rows: Sequence[R]
    nothing: str
    notes: Sequence[str] = ()
    without: Sequence[str] = ()
    about: Mapping[str, object] = {}
    asides: Sequence[str] = ()

    def document(self) -> dict[str, object]:
        """Return it for programs."""
        items = records(self.fields, self.rows)
        return {"v": 1, **self.about, self.name: items, "notes": list(self.notes)}

    def table(self, display: Display, *, wide: bool) -> list[str]:
        """Return it for people; all columns are never shortened."""
        display = replace(display, width=None) if wide else display
        columns = columns_of(self.fields, wide=wide, without=self.without)
        return table(columns, self.rows, display)


def held(amount: int | None, *, none: str = UNKNOWN) -> str:
    """Write what is held in whole MiB, rounded up: over a limit must not read as equal to it."""
    return mebibytes(amount, unit="Mi", unknown=none)


def gibibytes(amount: int | None) -> str:
    """Write what many hold together in tenths of a GiB, rounded up."""
    return UNKNOWN if amount is None else f"{-(-amount * 10 // GIB) / 10:.1f}Gi"


def allowed(amount: int | None, *, none: str = NOT_THERE) -> str:
    """Write what may be held in whole MiB, rounded down."""
    return limit_mebibytes(amount, unit="Mi", unknown=none)


def exact(amount: int | None) -> str | None:
    """Write an amount for programs: a quantity without any rounding, None where nobody knows it."""
    return None if amount is None else write_bytes(amount, largest="Mi")


def readable(amount: int) -> str:
    """Write an amount for reading, with its exact bytes where MiB would not say them."""
    quantity = write_bytes(amount, largest="Mi")
    return quantity if quantity.endswith("Mi") else f"{allowed(amount)} ({amount} bytes)"


def share_of(used: int | None, limit: int | None) -> float | None:
    return None if used is None or not limit else used / limit


def total_of(amounts: Sequence[int | None], none: int | None = None) -> int | None:
    """Add up, unless one of them is unknown; `none` where there are none."""
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts):
        return None
    return sum(known) if known else none


def percent(used: int | None, limit: int | None) -> str:
    """Write a share in whole percent, rounded up: what is over does not read as 100 %."""
    if used is None:
        return UNKNOWN
    return f"{-(-used * 100 // limit)}%" if limit else NOT_THERE


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun: 1 pod, 2 pods."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def amount(
    name: str,
    value: Callable[[R], int | None],
    title: str = "",
    write: Callable[[int | None], str] = held,
    *,
    cell: Callable[[R], Cell | Bar | str] | None = None,
    wide: int = 0,
    spare: int = 0,
) -> Field[R]:
    """Make a field of an amount, written for people; programs read it without any rounding."""
    return Field(
        name,
        lambda row: exact(value(row)),
        title,
        cell or (lambda row: write(value(row))),
        right=True,
        wide=wide,
        spare=spare,
        order=value,
        largest_first=True,
    )


def columns_of(
    fields: Iterable[Field[R]], *, wide: bool = False, without: Collection[str] = ()
) -> list[Field[R]]:
    """Return what people are shown, from left to right."""
    chosen = (item for item in fields if item.title and item.title not in without)
    return sorted((item for item in chosen if wide or not item.wide), key=lambda item: item.wide)


def said_of(fields: Iterable[Field[R]], rows: Sequence[R]) -> list[Field[R]]:
    """Leave out what is said only where it holds for any row, and holds for none of these."""
    return [item for item in fields if item.some is None or any(map(item.some, rows))]


def table(columns: Sequence[Field[R]], rows: Sequence[R], display: Display) -> list[str]:
    """Lay rows out below their titles, without columns that a terminal has no room for."""
    columns = said_of(columns, rows)
    head = [Cell(column.title, Tone.STRONG) for column in columns]
    lines = [head, *([column.shown(row, display) for column in columns] for row in rows)]
    widths = [max(len(line[place].text) for line in lines) for place in range(len(columns))]
    if display.width is not None and sum(widths, len(_GAP) * (len(widths) - 1)) > display.width:
        places = _narrowed(columns, widths, display.width)
        lines = [[line[at] for at in places] for line in lines]
        columns = [columns[at] for at in places]
        widths = _fitted(columns, [widths[at] for at in places], display.width)
    return [_line(columns, widths, line, display) for line in lines]


def _narrowed(columns: Sequence[Field[R]], widths: Sequence[int], width: int) -> list[int]:
    """Leave columns out that can be spared, until what is left fits."""
    left = list(range(len(columns)))
    spare = sorted((at for at in left if columns[at].spare), key=lambda at: columns[at].spare)
    for place in spare:
        least = sum(_least(columns[at], widths[at]) for at in left)
        if least + len(_GAP) * (len(left) - 1) <= width:
            break
        left.remove(place)
    return left


def records(fields: Iterable[Field[R]], rows: Sequence[R]) -> list[dict[str, object]]:
    """Write rows for programs, by name."""
    said = said_of(fields, rows)
    named = [(item.name, item.value) for item in said if item.name and item.value]
    return [{name: value(row) for name, value in named} for row in rows]


def csv_lines(fields: Sequence[Field[R]], rows: Sequence[R]) -> list[str]:
    """Write rows as CSV, with quotes where RFC 4180 asks for them; unknown is empty."""
    chosen = [item for item in fields if item.in_csv]
    lines = records(chosen, rows)
    names = lines[0] if lines else [item.name for item in chosen if item.name and not item.some]
    return [",".join(names), *(",".join(map(_csv_text, line.values())) for line in lines)]


def share_tone(used: int, limit: int) -> Tone:
    """Choose the colour of a share: red above the limit, yellow from nine tenths on."""
    if used > limit:
        return Tone.BAD
    return Tone.WARN if used * 10 >= limit * 9 else Tone.GOOD


def coloured(cell: Cell, display: Display) -> str:
    text, code = cell.text, cell.tone.value
    return f"\x1b[{code}m{text}{_PLAIN}" if display.colour and code and text else text


def wrapped(
    text: str, indent: str, display: Display, *, first: str | None = None, tone: Tone = Tone.PLAIN
) -> list[str]:
    """Break a sentence into lines; `first` begins the first one."""
    return textwrap.wrap(
        coloured(Cell(printable(text), tone), display),
        min(display.width or WIDTH, WIDTH),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def chapter(title: str, lines: Iterable[str], display: Display) -> list[str]:
    """Put a title above lines, and an empty line above both."""
    return ["", coloured(Cell(title, Tone.STRONG), display), *lines]


def shortened(text: str, width: int, display: Display) -> str:
    """Take a name's middle out: what begins it and what ends it tells pods apart."""
    if len(text) <= width:
        return text
    mark = "…" if display.unicode else ".."
    rest = max(width - len(mark), 2)
    tail = rest // 2
    return f"{text[: rest - tail]}{mark}{text[-tail:]}"


def _csv_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else printable(str(value))
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(char in text for char in ',"') else text


def _least(column: Field[R], widest: int) -> int:
    """Return how narrow a column can be."""
    return max(len(column.title), min(widest, _LEAST_NAME)) if column.shrinks else widest


def _fitted(columns: Sequence[Field[R]], widths: list[int], width: int) -> list[int]:
    """Take from the widest names until the line fits, or nothing more can be taken."""
    fitted = list(widths)
    excess = sum(fitted) + len(_GAP) * (len(fitted) - 1) - width
    while excess > 0:
        places = [
            place
            for place, column in enumerate(columns)
            if column.shrinks and fitted[place] > max(_LEAST_NAME, len(column.title))
        ]
        if not places:
            break
        widest = max(places, key=lambda place: fitted[place])
        fitted[widest] -= 1
        excess -= 1
    return fitted


def _line(
    columns: Sequence[Field[R]], widths: Sequence[int], cells: Sequence[Cell], display: Display
) -> str:
    parts = []
    for column, width, cell in zip(columns, widths, cells, strict=True):
        text = shortened(cell.text, width, display)
        padding = " " * (width - len(text))
        shown = coloured(Cell(text, cell.tone), display)
        parts.append(f"{padding}{shown}" if column.right else f"{shown}{padding}")
    return _GAP.join(parts).rstrip()


def width_of(line: str) -> int:
    """Return how many places a line takes that may have colours."""
    return sum(_places(match[2]) for match in _COLOURED.finditer(line) if match[2])


def clipped(line: str, width: int) -> str:
    """Cut a line where it would leave the terminal."""
    parts, room = [], width
    for match in _COLOURED.finditer(line):
        if match[1]:
            parts.append(match[1])
            continue
        room -= _places(match[2])
        if room < 0:
            return "".join((*parts, _PLAIN if "\x1b" in line else ""))
        parts.append(match[2])
    return line


def _places(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
