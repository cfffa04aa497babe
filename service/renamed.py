"""
PURE. Metrics under the names that they had, for one release beside the new ones: dashboards and
alerts of operators have that long to follow. This module goes with the release after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from service.exposition import Metric


def age(value: float, now: float) -> float:
    """Return for how long something has been so, of the time since when it has."""
    return round(max(now - value, 0.0), 3)


def left(value: float, now: float) -> float:
    """Return how long something lasts, of the time when it ends."""
    return round(value - now, 3)


def same(value: float, _: float) -> float:
    return value


class Renamed(NamedTuple):
    """`value` makes the old figure of the new one at a time; `blanks` were in values of labels."""

    old: str
    new: str
    value: Callable[[float, float], float] = same
    blanks: bool = False

    def of(self, new: Family, now: float) -> Family:
        text = f"Deprecated, use {self.new}"
        values = tuple(
            (self._labels(labels), None if value is None else self.value(value, now))
            for labels, value in new.values
        )
        return Family(self.old, new.kind, text, values)

    def _labels(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        if not self.blanks:
            return labels
        return {key: value.replace("_", " ") for key, value in labels.items()}


def with_old_names(
    metrics: Iterable[Metric], renamed: Iterable[Renamed], now: float
) -> Iterator[Metric]:
    """Yield each metric and, behind it, those that it was called before; `now` is Unix time."""
    rows = tuple(renamed)
    for metric in metrics:
        yield metric
        if isinstance(metric, Family):
            yield from (row.of(metric, now) for row in rows if row.new == metric.name)
