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
from kubectl_gpufence.verbs.recommend.chart import chart, chart_days, words
from kubectl_gpufence.view import NOT_THERE, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpufence.need import NeedDay, NeedSummary
    from kubectl_gpufence.verbs.recommend.freed import Packing


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


STYLE: Final = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #16191d; --faint: #5b6470; --line: #d9dde3;
  --held: #7fa8d9; --over: #d2493a; --limit: #16191d; --told: #7a5ccf; --target: #14804a;
  --warn: #9a5b00; --link: #1d5fae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2126; --ink: #e8eaed; --faint: #a3acb8; --line: #363c45;
    --held: #4f7fb8; --over: #e86a5c; --limit: #e8eaed; --told: #b39df0; --target: #4fc78a;
    --warn: #f0b35a; --link: #8ab8f0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 90rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
header p, .about { color: var(--faint); margin: 0 0 1rem; }
.about { margin-bottom: .5rem; overflow-wrap: anywhere; }
a { color: var(--link); }
.overview, article {
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem;
}
.overview { padding: .25rem 1rem; margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; white-space: nowrap; }
th:nth-child(n+5):nth-child(-n+7), td:nth-child(n+5):nth-child(-n+7) { text-align: right; }
td:nth-child(n+5) { white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody tr:last-child td { border-bottom: 0; }
td { overflow-wrap: anywhere; }
td:first-child { min-width: 10rem; } td:nth-child(4) { min-width: 6rem; }
.legend {
  display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 0 0 1rem; color: var(--faint);
}
.legend i {
  display: inline-block; width: 1.25rem; height: .7rem; margin-right: .4rem; vertical-align: -1px;
}
.legend i.held { background: var(--held); } .legend i.over { background: var(--over); }
.legend i.limit, .legend i.told, .legend i.target { height: 0; vertical-align: .25rem; }
.legend i.limit { border-top: 2px solid var(--limit); }
.legend i.told { border-top: 2px dotted var(--told); }
.legend i.target { border-top: 2px dashed var(--target); }
.legend b { color: var(--over); }
svg .mark {
  fill: var(--over); font-size: 14px; font-weight: 700; stroke: var(--card); stroke-width: 3px;
  paint-order: stroke;
}
.models {
  display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr));
}
article:target { outline: 2px solid var(--link); }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0 0 .5rem; }
dt { color: var(--faint); font-size: .8rem; }
dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; max-width: 36rem; height: auto; }
svg text { font: 10px system-ui, sans-serif; }
.axis { fill: var(--faint); }
.grid { stroke: var(--line); }
rect.held { fill: var(--held); } rect.over { fill: var(--over); }
path, .target { fill: none; stroke-width: 1.75; }
path.limit { stroke: var(--limit); }
path.told { stroke: var(--told); stroke-dasharray: 1.5 3; stroke-linecap: round; }
line.target { stroke: var(--target); stroke-dasharray: 6 4; }
.badge {
  display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: 0 .6rem;
  font-size: .78rem; font-weight: 600; white-space: nowrap; color: var(--faint);
}
.badge.high { color: var(--target); } .badge.medium { color: var(--link); }
.badge.capped { color: var(--warn); }
.reasons { margin: .5rem 0; padding: 0; list-style: none; font-size: .87rem; color: var(--faint); }
.reasons li { overflow-wrap: anywhere; }
.reasons b { color: var(--ink); }
details { font-size: .87rem; }
details ul { margin: .25rem 0 0; padding-left: 1.2rem; }
summary { cursor: pointer; color: var(--link); }
footer { margin-top: 1.5rem; color: var(--faint); font-size: .9rem; overflow-wrap: anywhere; }
@media screen and (max-width: 60rem) {
  thead { position: absolute; left: -100vw; }
  tr { display: grid; grid-template-columns: repeat(3, 1fr); padding: .6rem 0; gap: .25rem .75rem; }
  tbody tr { border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; }
  td:nth-child(n+1):nth-child(-n+8) {
    border: 0; padding: 0; text-align: left; white-space: normal;
  }
  td:first-child, td:last-child { grid-column: 1 / -1; }
  td:nth-child(n+2):nth-child(-n+7)::before {
    content: attr(data-title); display: block; color: var(--faint); font-size: .75rem;
  }
}
@media print {
  :root {
    --page: #ffffff; --card: #ffffff; --ink: #000000; --faint: #444444; --line: #bbbbbb;
    --held: #a9c3e3; --over: #c03a2b; --limit: #000000; --told: #6546b8; --target: #0d6a3b;
    --warn: #7a4800; --link: #000000;
  }
  body { max-width: none; padding: 0; font-size: 9pt; line-height: 1.35; }
  .models { display: block; columns: 2; column-gap: .5rem; }
  article { break-inside: avoid; padding: .5rem .6rem; margin-bottom: .5rem; }
  article h2 { font-size: 10pt; }
  dl, .reasons { margin: .25rem 0; }
  svg { max-height: 34mm; }
  table { font-size: .85em; }
  tr { break-inside: avoid; }
  details { display: none; }
  a { text-decoration: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
