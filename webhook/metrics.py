"""
What the webhook says of its requests: one count and one line of the log for each, and a page of
metrics for whoever asks. All three are made of the same outcome.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

import orjson

import service.logs
from service.exposition import Distribution, Family, Histogram, write_page
from service.logs import LEVELS, moment
from service.renamed import Renamed, age, left, with_old_names
from webhook.review import ReviewResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from service.exposition import Metric
    from webhook.review import ReviewOutcome

V = TypeVar("V")

REQUESTS: Final = "gpufence_webhook_requests_total"
DURATION: Final = "gpufence_webhook_request_duration_seconds"
WARNINGS: Final = "gpufence_webhook_warnings_total"
LOADS: Final = "gpufence_webhook_certificate_loads_total"
EXPIRY: Final = "gpufence_webhook_certificate_expiry_timestamp_seconds"
READY: Final = "gpufence_webhook_ready"
NODES: Final = "gpufence_webhook_gpu_nodes"
NAMESPACES: Final = "gpufence_webhook_namespaces"
PROFILES: Final = "gpufence_webhook_applied_profiles"
CONTACT: Final = "gpufence_webhook_cluster_last_contact_timestamp_seconds"

RENAMED: Final = (
    Renamed("gpufence_webhook_certificate_expiry_seconds", EXPIRY, left),
    Renamed("gpufence_webhook_cluster_silence_seconds", CONTACT, age),
)
"""What is shown under its old name, too, until the release after the next."""

_NOTHING = Distribution((0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5))
_LEVELS = {ReviewResult.FAILED: logging.ERROR, ReviewResult.REJECTED: logging.WARNING}
_WHERE_ANY = ("reason", "detail", "operations", "warnings", "dryRun")
"""What of a request has a field of its line only where there is any."""
_LEVEL_NAMES = {logging.getLevelNamesMapping()[name.upper()]: name for name in LEVELS}


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number that is asked for when the page is; with a label several, None has no line."""

    name: str
    help: str
    read: Callable[[], float | Mapping[str, float] | None]
    label: str = ""

    def family(self) -> Family:
        value = self.read()
        if value is None or isinstance(value, (int, float)):
            return Family(self.name, "gauge", self.help, (({}, value),))
        values = tuple(({self.label: key}, each) for key, each in sorted(value.items()))
        return Family(self.name, "gauge", self.help, values)


class Metrics:
    """
    The webhook's numbers, which its threads may change at any time.

    Every label that can be foreseen is there from the start, at zero: a rate needs the time before
    the first event, too.
    """

    def __init__(self, hooks: tuple[str, ...], clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._durations = dict.fromkeys(hooks, _NOTHING)
        self._warnings = dict.fromkeys(hooks, 0)
        self._loads = {"refused": 0, "swapped": 0}
        self._gauges: list[Gauge] = []
        self._sources: list[Callable[[], Iterable[Metric]]] = []

    def add_gauges(self, *gauges: Gauge) -> None:
        """Show numbers that somebody else knows."""
        self._gauges += gauges

    def add_source(self, source: Callable[[], Iterable[Metric]]) -> None:
        """Show whole metrics that somebody else knows."""
        self._sources.append(source)

    def count(self, hook: str, outcome: ReviewOutcome, seconds: float) -> None:
        with self._lock:
            self._requests[hook, outcome.result.value, outcome.reason] += 1
            self._durations[hook] = self._durations[hook].observed(seconds)
            self._warnings[hook] += outcome.warnings

    def count_load(self, result: str) -> None:
        """Count a certificate that was `swapped` in or `refused`."""
        with self._lock:
            self._loads[result] += 1

    def page(self) -> str:
        with self._lock:
            requests, loads = sorted(self._requests.items()), self._loads.copy()
            durations, warnings = self._durations.copy(), self._warnings.copy()
        keys = ("hook", "result", "reason")
        found: list[Metric] = [
            Family(
                REQUESTS,
                "counter",
                "Requests by hook and what became of them",
                tuple((dict(zip(keys, labels, strict=True)), n) for labels, n in requests),
            ),
            Histogram(
                DURATION,
                "Time from the whole body to the answer",
                tuple(_labelled("hook", durations)),
            ),
            Family(
                WARNINGS,
                "counter",
                "Warnings sent to the creators of pods",
                tuple(_labelled("hook", warnings)),
            ),
            Family(
                LOADS,
                "counter",
                "Certificates that were found, by whether they went live",
                tuple(_labelled("result", loads)),
            ),
            *(gauge.family() for gauge in self._gauges),
            *(metric for source in self._sources for metric in source()),
        ]
        return write_page(with_old_names(found, RENAMED, self._clock()))


class RequestLog:
    """
    Writes a line for each request, in the form of all others but past the logging module, whose
    own part would be as much as that of reading the review.
    """

    def __init__(self, level: int, stream: BinaryIO) -> None:
        self.level = level
        self._stream = stream

    def write(self, hook: str, outcome: ReviewOutcome, seconds: float) -> None:
        level = _LEVELS.get(outcome.result, logging.INFO)
        if level < self.level:
            return
        subject = outcome.subject
        line: dict[str, object] = {
            "time": moment(time.time()),
            "level": _LEVEL_NAMES[level],
            "logger": "webhook.requests",
            "message": "request",
            "hook": hook,
            "result": outcome.result.value,
            "uid": subject.uid,
            "namespace": subject.namespace,
            "name": subject.name,
            "milliseconds": round(seconds * 1000, 3),
        }
        shown = (outcome.reason, outcome.detail, outcome.operations, outcome.warnings)
        where_any = zip(_WHERE_ANY, (*shown, subject.dry_run), strict=True)
        line.update((field, value) for field, value in where_any if value)
        self._stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        self._stream.flush()


class Account:
    """Called once for each request, whatever became of it."""

    def __init__(self, metrics: Metrics, log: RequestLog) -> None:
        self._metrics = metrics
        self._log = log

    def __call__(self, hook: str, outcome: ReviewOutcome, seconds: float) -> None:
        self._metrics.count(hook, outcome, seconds)
        self._log.write(hook, outcome, seconds)


def start_logging(level: str) -> RequestLog:
    """Send everything to stderr, in one form; return the log of requests."""
    service.logs.start_logging(level)
    root = logging.getLogger()
    # Starting and stopping are reported by us, with the addresses and the reasons.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, root.level))
    return RequestLog(root.level, sys.stderr.buffer)


def _labelled(label: str, values: Mapping[str, V]) -> Iterator[tuple[dict[str, str], V]]:
    for key, value in sorted(values.items()):
        yield {label: key}, value
