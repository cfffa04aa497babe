"""
PURE. Amounts, sentences and tables as people read them, fitted to where they are shown: colours
take no places of a terminal, letters of East Asia two.

A dash stands for what does not apply, a question mark for what nobody knows: unknown is never zero.
Every cell and sentence is made printable here, so that no name or annotation steers a terminal.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from gpufence.quantity import GIB, write_bytes
from gpufence.text import limit_mebibytes, mebibytes, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


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


class Column(NamedTuple, Generic[R]):
    """
    A title, and what each row has below it; `right` for numbers, `shrinks` for names that may lose
    their middle on a terminal.
    """

    title: str
    cell: Callable[[R], Cell | str]
    right: bool = False
    shrinks: bool = False


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


def percent(used: int | None, limit: int | None) -> str:
    """Write a share in whole percent, rounded up: what is over does not read as 100 %."""
    if used is None:
        return UNKNOWN
    return f"{-(-used * 100 // limit)}%" if limit else NOT_THERE


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun: 1 pod, 2 pods."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def table(columns: Sequence[Column[R]], rows: Iterable[R], display: Display) -> list[str]:
    """Lay rows out below the titles of their columns."""
    head = [Cell(column.title, Tone.STRONG) for column in columns]
    lines = [head, *([_cell(column.cell(row)) for column in columns] for row in rows)]
    widths = [max(len(line[place].text) for line in lines) for place in range(len(columns))]
    if display.width is not None:
        widths = _fitted(columns, widths, display.width)
    return [_line(columns, widths, line, display) for line in lines]


def narrowed(
    columns: Sequence[Column[R]], rows: Sequence[R], width: int, dispensable: Iterable[str]
) -> list[Column[R]]:
    """Leave columns out, in the order of their titles in `dispensable`, until what is left fits."""
    left = list(columns)
    for title in dispensable:
        least = [_least(column, rows) for column in left]
        if sum(least) + len(_GAP) * (len(left) - 1) <= width:
            break
        left = [column for column in left if column.title != title]
    return left


def csv_line(values: Iterable[object]) -> str:
    """Write a line of CSV, with quotes where RFC 4180 asks for them; unknown is empty."""
    return ",".join(_field(value) for value in values)


def bar(used: int | None, limit: int | None, display: Display, *, least_width: int = 0) -> Cell:
    """
    Draw used / limit with its percentage, or that alone on a terminal of less than `least_width`;
    empty where one of them is unknown.
    """
    full, empty = ("█", "░") if display.unicode else ("#", ".")
    if used is None or not limit:
        return Cell(percent(used, limit), Tone.FAINT)
    if display.width is not None and display.width < least_width:
        return Cell(percent(used, limit), share_tone(used, limit))
    cells = min(-(-used * _BAR_CELLS // limit), _BAR_CELLS)
    drawn = f"{full * cells}{empty * (_BAR_CELLS - cells)} {percent(used, limit)}"
    return Cell(drawn, share_tone(used, limit))


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
        display.width or WIDTH,
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


def _field(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else printable(str(value))
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(char in text for char in ',"') else text


def _cell(content: Cell | str) -> Cell:
    text, tone = content if isinstance(content, Cell) else (content, Tone.PLAIN)
    return Cell(printable(text), tone)


def _least(column: Column[R], rows: Iterable[R]) -> int:
    """Return how narrow a column can be."""
    widest = max((len(_cell(column.cell(row)).text) for row in rows), default=0)
    return max(len(column.title), min(widest, _LEAST_NAME) if column.shrinks else widest)


def _fitted(columns: Sequence[Column[R]], widths: list[int], width: int) -> list[int]:
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
    columns: Sequence[Column[R]], widths: Sequence[int], cells: Sequence[Cell], display: Display
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
