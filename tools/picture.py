"""
Draw docs/demo.svg from docs/demo.txt, which is what `make demo` printed: one column for each look
at the card. Colours are legible on light and on dark pages.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Final, NamedTuple

from tools import ROOT

RECORD: Final = ROOT / "docs" / "demo.txt"
PICTURE: Final = ROOT / "docs" / "demo.svg"
_LOOK = re.compile(r"\[(?P<bar>[#= ]+)\] +(?P<used>\d+) of (?P<card>\d+) MiB +(?P<verdict>.+)")
_NEIGHBOUR = re.compile(r"^vision +trainer +\S+ +\d+ +\S+ +\S+ +(?P<used>\d+)Mi", re.MULTILINE)
_EVICTED = re.compile(r"Evicted: (?P<held>\d+) of (?P<limit>\d+) MiB on (?P<card>card \d+)")
_WIDTH, _HEIGHT = 840, 280
_LEFT, _RIGHT, _TOP, _FLOOR = 60, 150, 40, 236
_CALM, _GREEDY, _OVER, _LINE = "#3a9a5b", "#c9822b", "#d9534f", "#888"


class Look(NamedTuple):
    """
    What the agent measured on the card at one moment, in MiB, and what it said of the greedy one.
    """

    neighbour: int
    greedy: int
    verdict: str


class Record(NamedTuple):
    """What a run says of the card that two tenants share."""

    card: int
    limit: int
    looks: tuple[Look, ...]
    words: str


def recorded(text: str) -> Record:
    """Read what a run of the demo printed."""
    lines = list(_LOOK.finditer(text))
    neighbour = int(_only(_NEIGHBOUR, text)["used"])
    looks = tuple(
        Look(min(neighbour, used), max(used - neighbour, 0), line["verdict"].strip())
        for line in lines
        for used in (int(line["used"]),)
    )
    evicted = _only(_EVICTED, text)
    words = f"holds {evicted['held']} MiB on {evicted['card']}"
    return Record(int(lines[0]["card"]), int(evicted["limit"]), looks, words)


def drawn(record: Record) -> str:
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    font = 'font-family="sans-serif" font-size="13" fill="#888"'
    title = "Two tenants on one card: the one that takes more than its limit is evicted"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img">',
            f"<title>{title}</title>",
            *_columns(record),
            *_words(record),
            "</svg>\n",
        )
    )


def _columns(record: Record) -> Iterator[str]:
    step = (_WIDTH - _LEFT - _RIGHT) / len(record.looks)
    for number, look in enumerate(record.looks):
        x = _LEFT + number * step
        within = min(look.greedy, record.limit)
        yield _box(x, step, 0, look.neighbour, record, _CALM)
        yield _box(x, step, look.neighbour, within, record, _GREEDY)
        yield _box(x, step, look.neighbour + within, look.greedy - within, record, _OVER)


def _box(x: float, width: float, below: int, amount: int, record: Record, colour: str) -> str:
    top = _y(below + amount, record)
    height = _y(below, record) - top
    place = f'x="{x:.1f}" y="{top:.1f}" width="{width - 2:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{colour}"/>'


def _words(record: Record) -> Iterator[str]:
    last, right = record.looks[-1], _WIDTH - _RIGHT + 8
    bound = last.neighbour + record.limit
    for amount, text in ((record.card, f"card {record.card} MiB"), (bound, "its limit")):
        y = _y(amount, record)
        way = f"M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"
        yield f'<path d="{way}" stroke="{_LINE}" stroke-dasharray="4 4"/>'
        yield f'<text x="{right}" y="{y + 4:.1f}">{text}</text>'
    middle = _y(last.neighbour // 2, record)
    yield f'<text x="{right}" y="{middle + 4:.1f}" fill="{_CALM}">its neighbour</text>'
    top = _y((bound + last.neighbour + last.greedy) // 2, record)
    yield f'<text x="{right}" y="{top + 4:.1f}" fill="{_OVER}">too much</text>'
    asked = f"one look after the other; a tenant asked for {record.limit} MiB"
    yield f'<text x="{_LEFT}" y="24" font-weight="bold">{asked}</text>'
    yield f'<text x="{_LEFT}" y="{_FLOOR + 24}">{escape(_caption(record))}</text>'


def _caption(record: Record) -> str:
    seconds = record.looks[-1].verdict.removeprefix("evict ")
    return f"it {record.words}, is over its limit for {seconds}, and is evicted"


def _y(amount: int, record: Record) -> float:
    return _FLOOR - (_FLOOR - _TOP) * amount / record.card


def _only(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.search(text)
    if found is None:
        raise ValueError(f"{RECORD.name} lacks {pattern.pattern}; keep a whole run in it")
    return found
