"""
PURE. All models' needs as one page for a browser: style and pictures inside, nothing fetched.

Whatever names somebody has given to things is text here and never markup; and a policy in the page
forbids it to run or fetch anything.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.need import Confidence
from gpufence.text import limit_mebibytes, mebibytes, printable
from kubectl_gpufence.recommend.chart import chart, chart_days, words
from kubectl_gpufence.recommend.style import STYLE
from kubectl_gpufence.table import NOT_THERE, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpufence.need import NeedDay, NeedSummary
    from kubectl_gpufence.recommend.freed import Packing

_TITLES: Final = (
    *("Owner", "Namespace", "Container", "Card", "Limit", "Peak", "Target", "Confidence"),
)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


class ModelDays(NamedTuple):
    """What is known of one model: its need, and its days, none where nobody remembers them."""

    summary: NeedSummary
    days: tuple[NeedDay, ...] = ()


def page(
    models: Sequence[ModelDays], cards: Sequence[Packing], where: str, notes: Sequence[str]
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
        f"<style>{STYLE}</style>",
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
        texts = (link, *map(_text, about), *_amounts(item))
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
            '<span><i class="limit"></i>limit</span><span><i class="told"></i>told</span>'
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
        f"<div><dt>{title}</dt><dd>{text}</dd></div>"
        for title, text in zip(("Limit", "Peak", "Target"), _amounts(item), strict=True)
    )
    yield "</dl>"
    days = chart_days(model.days)
    if days:
        yield chart(days, item.target_bytes, f"{key.kind}/{key.name}: {words(days[-1])}")
    yield '<ul class="reasons">'
    for title, reason in item.reasons._asdict().items():
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


def _amounts(item: NeedSummary) -> tuple[str, str, str]:
    return (
        limit_mebibytes(item.limit_bytes, unknown=NOT_THERE),
        mebibytes(item.peak_bytes),
        limit_mebibytes(item.target_bytes, unknown=NOT_THERE),
    )


def _badge(item: NeedSummary) -> str:
    said = "at its cap" if item.capped else str(item.confidence)
    return f'<span class="badge {"capped" if item.capped else item.confidence}">{said}</span>'


def _text(text: str) -> str:
    return escape(printable(text))
