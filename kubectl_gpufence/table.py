"""
PURE. Tables that fit a terminal, with bars and, where wanted, colours.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_gpufence.words import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH: Final = 100
GAP: Final = "  "

_BAR_CELLS = 6
_LEAST_NAME = 12


class Tone(Enum):
    """
    How a word is shown on a terminal; the values are the codes of ECMA-48.
    """

    PLAIN = ""
    GOOD = "32"
    WARN = "33"
    BAD = "31"
    FAINT = "2"
    STRONG = "1"


@dataclass(frozen=True, slots=True)
class Look:
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


class Column(NamedTuple):
    """
    A title; `right` for numbers, `shrinks` for names that may lose their middle on a terminal.
    """

    title: str
    right: bool = False
    shrinks: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], look: Look) -> list[str]:
    """
    Lay rows out below their titles.
    """
    body = list(rows)
    widths = [
        max([len(column.title), *(len(row[place].text) for row in body)])
        for place, column in enumerate(columns)
    ]
    if look.width is not None:
        widths = _fitted(columns, widths, look.width)
    head = [Cell(column.title, Tone.STRONG) for column in columns]
    return [_line(columns, widths, row, look) for row in [head, *body]]


def bar(used: int | None, limit: int | None, look: Look) -> Cell:
    """
    Draw used / limit with its percentage; empty where one of them is unknown.
    """
    full, empty = ("█", "░") if look.unicode else ("#", ".")
    if used is None or not limit:
        return Cell(percent(used, limit), Tone.FAINT)
    cells = min(-(-used * _BAR_CELLS // limit), _BAR_CELLS)
    return Cell(
        f"{full * cells}{empty * (_BAR_CELLS - cells)} {percent(used, limit)}", tone(used, limit)
    )


def tone(used: int, limit: int) -> Tone:
    """
    Choose the colour of a share: red above the limit, yellow from nine tenths on.
    """
    if used > limit:
        return Tone.BAD
    return Tone.WARN if used * 10 >= limit * 9 else Tone.GOOD


def coloured(text: str, tone: Tone, look: Look) -> str:
    return f"\x1b[{tone.value}m{text}\x1b[0m" if look.colour and tone.value and text else text


def wrapped(text: str, indent: str, look: Look, *, first: str | None = None) -> list[str]:
    """
    Break a sentence into lines; `first` begins the first one.
    """
    return textwrap.wrap(
        text,
        look.width or WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def shortened(text: str, width: int, look: Look) -> str:
    """
    Take a name's middle out: what begins it and what ends it tells pods apart.
    """
    if len(text) <= width:
        return text
    mark = "…" if look.unicode else ".."
    rest = max(width - len(mark), 2)
    tail = rest // 2
    return f"{text[: rest - tail]}{mark}{text[-tail:]}"


def _fitted(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """
    Take from the widest names until the line fits, or nothing more can be taken.
    """
    fitted = list(widths)
    excess = sum(fitted) + len(GAP) * (len(fitted) - 1) - width
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


def _line(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Cell], look: Look) -> str:
    parts = []
    for column, width, cell in zip(columns, widths, row, strict=True):
        text = shortened(cell.text, width, look)
        padding = " " * (width - len(text))
        shown = coloured(text, cell.tone, look)
        parts.append(f"{padding}{shown}" if column.right else f"{shown}{padding}")
    return GAP.join(parts).rstrip()
