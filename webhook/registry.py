"""
Counters, gauges and histograms that threads may change at any time.

Three kinds of numbers are all that is needed here; see docs/adr for why not a library.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import TYPE_CHECKING

from gpufence.exposition import Distribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Counter:
    """
    A number that only grows, one for each combination of labels.
    """

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.help = text
        self._labels = tuple(labels)
        self._lock = threading.Lock()
        self._values: dict[tuple[str, ...], int] = {} if labels else {(): 0}

    def add(self, *labels: str) -> None:
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + 1

    def start(self, *labels: str) -> None:
        """
        Show a combination from the beginning, at zero: a rate needs the time before, too.
        """
        with self._lock:
            self._values.setdefault(labels, 0)

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values:
            yield "", dict(zip(self._labels, labels, strict=True)), value


class Gauge:
    """
    A number that is asked for when the page is; None, unknown, has no line.
    """

    kind = "gauge"

    def __init__(
        self,
        name: str,
        text: str,
        read: Callable[[], float | Mapping[str, float] | None],
        label: str = "",
    ) -> None:
        self.name = name
        self.help = text
        self._read = read
        self._label = label

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        value = self._read()
        if isinstance(value, (int, float)):
            yield "", {}, value
        elif value is not None:
            for key in sorted(value):
                yield "", {self._label: key}, value[key]


class Histogram:
    """
    Counts of durations by upper bounds, one histogram for each value of one label.
    """

    kind = "histogram"

    def __init__(self, name: str, text: str, label: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.help = text
        self._label = label
        self._bounds = tuple(bounds)
        self._lock = threading.Lock()
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def start(self, label: str) -> None:
        with self._lock:
            self._counts.setdefault(label, [0] * (len(self._bounds) + 1))
            self._sums.setdefault(label, 0.0)

    def observe(self, label: str, value: float) -> None:
        if label not in self._counts:
            self.start(label)
        with self._lock:
            self._counts[label][bisect_left(self._bounds, value)] += 1
            self._sums[label] += value

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        with self._lock:
            found = sorted((label, tuple(counts)) for label, counts in self._counts.items())
            sums = dict(self._sums)
        for label, counts in found:
            told = Distribution(self._bounds, counts, sums[label])
            yield from told.samples({self._label: label})
