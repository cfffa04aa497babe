"""
Draw docs/scaling.svg: `python -m tests.keda.picture` writes it anew.

What the model of a queue does for an hour by three rules. Colours are legible on light and on dark
pages.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.keda.model import Rule, Run, Settings, run

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURE: Final = Path(__file__).resolve().parents[2] / "docs" / "scaling.svg"
RATE: Final = 20.0
_WIDTH, _HEIGHT = 840, 200
_LEFT, _TOP, _PANEL, _DEEP = 40, 44, 760, 120
_MOST = 100
_SECONDS = 3600.0


class Panel(NamedTuple):
    """One rule, its title and the colour of its replicas."""

    rule: Rule
    title: str
    colour: str


PANELS: Final = (
    Panel(Rule.BACKLOG, "seconds of backlog alone", "#d9534f"),
    Panel(Rule.TOUCHED, "and workers that did anything in the last 5 s", "#c9822b"),
    Panel(Rule.BUSY, "and how much of their time workers work (ours)", "#3a9a5b"),
)


def settings(rule: Rule) -> Settings:
    """Twenty messages a second of half a second each; a worker takes 20 s to start."""
    window = 120.0 if rule is Rule.BUSY else 300.0
    return Settings(rate=lambda _: RATE, rule=rule, utilization=0.85, window=window)


def drawn() -> str:
    size = f'width="{_WIDTH}" height="{_HEIGHT * len(PANELS)}"'
    font = 'font-family="sans-serif" font-size="13" fill="#888"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>']
    for number, panel in enumerate(PANELS):
        parts.append(f'<g transform="translate(0 {number * _HEIGHT})">')
        parts += _panel(panel, run(settings(panel.rule)))
        parts.append("</g>")
    return "\n".join((*parts, "</svg>")) + "\n"


def _panel(panel: Panel, made: Run) -> Iterator[str]:
    figures = (
        f"{made.mean_replicas:.1f} replicas on average, wait p99 {made.wait_p99:.1f} s, "
        f"{100 * made.over_target:.0f} % of messages wait for more than 5 s"
    )
    yield f'<text x="{_LEFT}" y="16" fill="{panel.colour}" font-weight="bold">{panel.title}</text>'
    yield f'<text x="{_LEFT}" y="34">{figures}</text>'
    for replicas in (0, 50, 100):
        y = _y(replicas)
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{replicas}</text>'
        yield f'<path d="M{_LEFT} {y:.1f}h{_PANEL}" stroke="#8886" fill="none"/>'
    load = _y(RATE * 0.5)
    yield f'<path d="M{_LEFT} {load:.1f}h{_PANEL}" stroke="#4a90d9" stroke-dasharray="4 3"/>'
    points = " ".join(f"{_x(at):.1f},{_y(replicas):.1f}" for at, replicas in _corners(made))
    yield f'<polyline points="{points}" stroke="{panel.colour}" stroke-width="2" fill="none"/>'
    for minute in range(10, 61, 10):
        x = _x(minute * 60.0)
        yield f'<text x="{x:.1f}" y="{_TOP + _DEEP + 16}" text-anchor="middle">{minute} min</text>'


def _corners(made: Run) -> Iterator[tuple[float, int]]:
    """Yield the moments before and after each change, and the last one."""
    before = made.moments[0]
    yield before.at, before.replicas
    for one in made.moments:
        if one.replicas != before.replicas:
            yield before.at, before.replicas
            yield one.at, one.replicas
        before = one
    yield before.at, before.replicas


def _x(at: float) -> float:
    return _LEFT + _PANEL * at / _SECONDS


def _y(replicas: float) -> float:
    return _TOP + _DEEP * (1 - min(replicas, _MOST) / _MOST)


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
