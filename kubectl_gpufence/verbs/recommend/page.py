"""
PURE. All models' needs as one page for a browser: style and pictures inside, nothing fetched. Each
model's days are a picture: what was held as bars, limit, told and target as lines.

Whatever names somebody has given to things is text here and never markup; and a policy in the page
forbids it to run or fetch anything. Lines of a picture differ in their dashes, too, so that nobody
needs colours to tell them apart; each bar says its figures in words.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.need import Confidence
from gpufence.quantity import GIB, MIB
from gpufence.text import limit_mebibytes, mebibytes, printable
from kubectl_gpufence.view import NOT_THERE, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpufence.need import NeedDay, NeedSummary
    from kubectl_gpufence.verbs.recommend.lines import Packing


_TITLES: Final = (
    *("Owner", "Namespace", "Container", "Card", "Limit", "Peak", "Target", "Confidence"),
)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


class ModelDays(NamedTuple):
    """What is known of one model: its need, and its days, none where nobody remembers them."""

    summary: NeedSummary
    days: tuple[NeedDay, ...] = ()


def page(
    models: Sequence[ModelDays],
    cards: Sequence[Packing],
    where: str,
    notes: Sequence[str],
    style: str,
) -> list[str]:
    """Write the page; `where` says whose models they are, and `cards` what they are packed on."""
    title = f"GPU memory: {_text(where)}"
    return [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        f"<header><h1>{title}</h1>",
        f"<p>{_sentence(models)}</p></header>",
        "<main>",
        *_overview(models),
        *_freed(cards),
        *_legend(models),
        '<section class="models">',
        *(line for number, model in enumerate(models) for line in _model(model, number)),
        "</section>",
        "</main>",
        *_footer(notes),
        "</body>",
        "</html>",
    ]


def _sentence(models: Sequence[ModelDays]) -> str:
    """Return in a sentence what the page shows."""
    if not models:
        return "No model has been measured yet."
    days = sorted({row.day for model in models for row in model.days})
    targets = [model for model in models if model.summary.target_bytes is not None]
    sure = [model for model in targets if model.summary.confidence is Confidence.HIGH]
    said = f"{counted(len(models), 'model')}, {counted(len(targets), 'target')}"
    sentence = f"{said}, {len(sure)} of high confidence."
    if days:
        sentence += f" Measured from {_text(days[0])} to {_text(days[-1])} (UTC)."
    return sentence


def _overview(models: Sequence[ModelDays]) -> Iterator[str]:
    """
    List all models in a table, each a link to its picture; in a narrow window each cell says its
    title.
    """
    if not models:
        return
    yield '<section class="overview"><table><thead><tr>'
    yield "".join(f'<th scope="col">{title}</th>' for title in _TITLES) + "</tr></thead><tbody>"
    for number, model in enumerate(models):
        item = model.summary
        key = item.key
        link = f'<a href="#m{number}">{_text(key.kind)}/{_text(key.name)}</a>'
        about = (key.namespace, key.container or NOT_THERE, key.card or NOT_THERE)
        amounts = (text for title, text in _amounts(item) if title in _TITLES)
        texts = (link, *map(_text, about), *amounts)
        cells = zip(_TITLES, (*texts, _badge(item)), strict=True)
        yield "<tr>" + "".join(f'<td data-title="{title}">{text}</td>' for title, text in cells)
        yield "</tr>"
    yield "</tbody></table></section>"


def _freed(cards: Sequence[Packing]) -> Iterator[str]:
    """Say of each model of card how many the targets would free, where any pod has one."""
    proposed = [item for item in cards if item.by_target]
    if proposed:
        yield '<section class="overview"><h2>Cards</h2><ul class="reasons">'
        for item in proposed:
            yield (
                f"<li><b>{_text(item.model)}</b> {counted(item.shares, 'pod')} on {item.held} of "
                f"{counted(item.cards, 'card')}; at their targets {item.needed} would do, which "
                f"frees {item.freed}. {item.by_target} of the pods have a target, the others count "
                "by their limits.</li>"
            )
        yield "</ul></section>"


def _legend(models: Sequence[ModelDays]) -> Iterator[str]:
    """Explain the pictures, where there are any."""
    if any(model.days for model in models):
        yield (
            '<p class="legend" aria-label="Legend"><span><i class="held"></i>held</span>'
            '<span><i class="over"></i>held, over the limit</span>'
            '<span><i class="limit"></i>limit</span><span><i class="told"></i>cap</span>'
            '<span><i class="target"></i>target</span>'
            "<span><b>!</b> evicted</span><span><b>&times;</b> out of memory</span></p>"
        )


def _model(model: ModelDays, number: int) -> Iterator[str]:
    item = model.summary
    key = item.key
    yield f'<article id="m{number}"><h2>{_text(key.kind)}/{_text(key.name)} {_badge(item)}</h2>'
    about = [text for text in (key.namespace, key.container, key.card) if text]
    yield f'<p class="about">{" · ".join(map(_text, about))}</p>'
    yield "<dl>" + "".join(
        f"<div><dt>{title}</dt><dd>{text}</dd></div>" for title, text in _amounts(item)
    )
    yield "</dl>"
    days = chart_days(model.days)
    if days:
        yield chart(days, item.target_bytes, f"{key.kind}/{key.name}: {words(days[-1])}")
    yield '<ul class="reasons">'
    for title, reason in item.reasons.said.items():
        yield f"<li><b>{title.capitalize()}</b> {_text(reason)}</li>"
    yield "</ul>"
    if days:
        yield "<details><summary>Day by day</summary><ul>"
        yield from (f"<li>{_text(words(day))}</li>" for day in reversed(days))
        yield "</ul></details>"
    yield "</article>"


def _footer(notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield "<footer><h2>Notes</h2><ul>"
        yield from (f"<li>{_text(note)}</li>" for note in notes)
        yield "</ul></footer>"


def _amounts(item: NeedSummary) -> Iterator[tuple[str, str]]:
    yield "Limit", limit_mebibytes(item.limit_bytes, unknown=NOT_THERE)
    yield "Peak", mebibytes(item.peak_bytes)
    if item.request_bytes is not None:
        yield "Request", limit_mebibytes(item.request_bytes)
    yield "Target", limit_mebibytes(item.target_bytes, unknown=NOT_THERE)


def _badge(item: NeedSummary) -> str:
    at_cap = "perhaps at its cap" if item.perhaps else "at its cap"
    said = at_cap if item.capped else str(item.confidence)
    return f'<span class="badge {"capped" if item.capped else item.confidence}">{said}</span>'


def _text(text: str) -> str:
    return escape(printable(text))


WIDTH: Final = 360
HEIGHT: Final = 180
_LEFT = 64
_RIGHT = 8
_TOP = 22
_BOTTOM = 22
_FLOOR = HEIGHT - _BOTTOM
_WIDEST = 28.0
_STEPS = 4
_DATE = 18  # half of what a date is wide
_MOST_DAYS = 28
_NICE = (1, 2, 4, 5, 8, 10)


class ChartDay(NamedTuple):
    """One day of a model, all nodes together; None where nothing was told or allowed."""

    day: str
    held_bytes: int
    told_bytes: int | None
    limit_bytes: int | None
    evictions: int
    out_of_memory: bool


class _Scale(NamedTuple):
    """Where amounts and days are in the picture."""

    top_bytes: int
    first: int
    days: int

    def y(self, amount: int) -> float:
        return round(_FLOOR - (_FLOOR - _TOP) * amount / self.top_bytes, 1)

    def x(self, day: str) -> float:
        """Return the left end of a day's place."""
        return round(_LEFT + self.width * (ordinal(day) - self.first), 1)

    def middle(self, day: str) -> float:
        return round(self.x(day) + self.width / 2, 1)

    @property
    def width(self) -> float:
        return (WIDTH - _LEFT - _RIGHT) / self.days


def chart_days(rows: Sequence[NeedDay]) -> list[ChartDay]:
    """Put the rows of all nodes together by day."""
    by_day: dict[str, list[NeedDay]] = {}
    for row in rows:
        by_day.setdefault(row.day, []).append(row)
    return [_together(day, by_day[day]) for day in sorted(by_day)]


def chart(days: Sequence[ChartDay], target_bytes: int | None, about: str) -> str:
    """
    Draw at least one day, and none long before the last; `about` says whose they are to those who
    cannot see it.
    """
    last = ordinal(days[-1].day)
    days = [item for item in days if last - ordinal(item.day) < _MOST_DAYS]
    scale = _scale(days, target_bytes)
    parts = [
        *_grid(scale),
        *(part for day in days for part in _bar(day, scale)),
        *_steps("told", [(item.day, item.told_bytes) for item in days], scale),
        *_steps("limit", [(item.day, item.limit_bytes) for item in days], scale),
        *_target(target_bytes, scale),
        *(mark for day in days for mark in _mark(day, scale)),
        *_dates(days, scale),
    ]
    label = escape(printable(about))
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    return "\n".join([head, *parts, "</svg>"])


def ordinal(day: str) -> int:
    """Return the number of a day such as 2026-11-19, counted from one that is long past."""
    year, month, number = (int(part) for part in day.split("-"))
    if month <= 2:  # noqa: PLR2004 - the year begins in March, so that leap days end it
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + number


def amount_label(amount: int) -> str:
    """Write an amount of the axis."""
    return f"{amount // GIB} GiB" if amount % GIB == 0 else f"{amount // MIB} MiB"


def _together(day: str, rows: Sequence[NeedDay]) -> ChartDay:
    told = [row.told_bytes * max(row.shares, 1) for row in rows if row.told_bytes is not None]
    return ChartDay(
        day,
        max(row.peak_bytes for row in rows),
        max(told, default=None),
        max((row.limit_bytes for row in rows if row.limit_bytes is not None), default=None),
        sum(row.evictions for row in rows),
        any(row.out_of_memory_limit_bytes for row in rows),
    )


def _scale(days: Sequence[ChartDay], target_bytes: int | None) -> _Scale:
    amounts = [target_bytes or 0, MIB]
    for item in days:
        amounts += [item.held_bytes, item.told_bytes or 0, item.limit_bytes or 0]
    first = ordinal(days[0].day)
    return _Scale(_nice_top(max(amounts)), first, ordinal(days[-1].day) - first + 1)


def _nice_top(most: int) -> int:
    """Return a round amount that is above all: four steps of it are round, too."""
    unit = GIB if most >= _STEPS * GIB else MIB
    step = -(-most // (_STEPS * unit))
    power = 1
    while power * _NICE[-1] < step:
        power *= _NICE[-1]
    return next(nice * power for nice in _NICE if nice * power >= step) * _STEPS * unit


def _grid(scale: _Scale) -> Iterator[str]:
    for step in range(_STEPS + 1):
        amount = scale.top_bytes * step // _STEPS
        y = scale.y(amount)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        label = amount_label(amount) if amount else "0"
        yield f'<text class="axis" x="{_LEFT - 5}" y="{y + 3.5}" text-anchor="end">{label}</text>'


def _bar(item: ChartDay, scale: _Scale) -> Iterator[str]:
    width = min(scale.width * 0.7, _WIDEST)
    x = round(scale.middle(item.day) - width / 2, 1)
    y = scale.y(item.held_bytes)
    over = item.limit_bytes is not None and item.held_bytes > item.limit_bytes
    place = f'x="{x}" y="{y}" width="{width:.1f}" height="{_FLOOR - y:.1f}"'
    yield f'<rect class="{"over" if over else "held"}" {place}>'
    yield f"<title>{escape(words(item))}</title></rect>"


def _mark(item: ChartDay, scale: _Scale) -> Iterator[str]:
    """Mark a day on which a limit was too small, above its bar."""
    mark = ("!" if item.evictions else "") + ("&times;" if item.out_of_memory else "")
    if mark:
        x, y = scale.middle(item.day), scale.y(item.held_bytes) - 4
        yield f'<text class="mark" x="{x}" y="{y:.1f}" text-anchor="middle">{mark}</text>'


def words(item: ChartDay) -> str:
    """Say a day's figures."""
    parts = [f"{item.day}: held {mebibytes(item.held_bytes)}"]
    if item.told_bytes is not None:
        parts.append(f"cap {limit_mebibytes(item.told_bytes)}")
    if item.limit_bytes is not None:
        parts.append(f"limit {limit_mebibytes(item.limit_bytes)}")
    if item.evictions:
        parts.append(f"evicted {item.evictions}x")
    if item.out_of_memory:
        parts.append("out of memory")
    return ", ".join(parts)


def _steps(kind: str, values: Sequence[tuple[str, int | None]], scale: _Scale) -> Iterator[str]:
    """
    Draw a line that stands for a day and steps from one to the next, with holes where there is no
    value.
    """
    drawn = ""
    before: str | None = None
    for day, amount in values:
        if amount is None:
            before = None
            continue
        x, y = scale.x(day), scale.y(amount)
        joined = before is not None and ordinal(day) == ordinal(before) + 1
        drawn += f"{'V' if joined else f'M{x} '}{y}H{round(x + scale.width, 1)}"
        before = day
    if drawn:
        yield f'<path class="{kind}" d="{drawn}"/>'


def _target(target_bytes: int | None, scale: _Scale) -> Iterator[str]:
    if target_bytes is not None:
        y = scale.y(target_bytes)
        yield f'<line class="target" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'


def _dates(days: Sequence[ChartDay], scale: _Scale) -> Iterator[str]:
    """Write the first day and the last, and the one in the middle where there is room."""
    places = sorted(
        {0, len(days) // 2, len(days) - 1} if len(days) > _STEPS else {0, len(days) - 1}
    )
    for place in places:
        day = days[place].day
        x = min(scale.middle(day), WIDTH - _DATE)
        yield f'<text class="axis" x="{x}" y="{HEIGHT - 7}" text-anchor="middle">{day[5:]}</text>'
