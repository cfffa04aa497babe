"""
PURE. A page of metrics in the text format of Prometheus, from values; docs/adr/0008-metrics.md
says why not by the usual library.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metric(Protocol):
    """Anything that has lines on the page."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def help(self) -> str: ...

    def samples(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """Yield suffix of the name, labels and value; what is unknown has no line."""
        ...


class Family(NamedTuple):
    """A counter or gauge: a value for each combination of labels; None, unknown, has no line."""

    name: str
    kind: str
    help: str
    values: tuple[tuple[Mapping[str, str], float | None], ...] = ()

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for labels, value in self.values:
            if value is not None:
                yield "", labels, value


class Distribution(NamedTuple):
    """How many values fell under each bound; the last count is of those above all bounds."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...] = ()
    sum: float = 0.0

    def observed(self, value: float) -> Distribution:
        """Return the distribution with one value more."""
        counts = list(self.counts or (0,) * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        return self._replace(counts=tuple(counts), sum=self.sum + value)

    def samples(self, labels: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """Yield what a histogram's lines say of it, each with these labels."""
        bounds = (*self.bounds, math.inf)
        totals = list(accumulate(self.counts or (0,) * len(bounds)))
        for bound, total in zip(bounds, totals, strict=True):
            yield "_bucket", {**labels, "le": _number(bound)}, total
        yield "_sum", labels, self.sum
        yield "_count", labels, totals[-1]


class Histogram(NamedTuple):
    """A distribution for each combination of labels."""

    name: str
    help: str
    values: tuple[tuple[Mapping[str, str], Distribution], ...]
    kind: str = "histogram"

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for labels, distribution in self.values:
            yield from distribution.samples(labels)


def write_page(metrics: Iterable[Metric], all_have: Mapping[str, str] | None = None) -> str:
    """Write all metrics as one page; `all_have` are labels of every line, behind its own."""
    shared = _pairs(all_have or {})
    lines: list[str] = []
    for metric in metrics:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        lines += [
            f"{metric.name}{suffix}{_labels(labels, shared)} {_number(value)}"
            for suffix, labels, value in metric.samples()
        ]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str], shared: str) -> str:
    inner = ",".join(filter(None, (_pairs(labels), shared)))
    return f"{{{inner}}}" if inner else ""


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
