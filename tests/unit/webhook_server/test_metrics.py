"""What is counted and written of requests: the page of metrics and the lines of the log."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from service.exposition import write_page
from webhook.metrics import EXPIRY, READY, SILENCE, Account, Gauge, Metrics, RequestLog
from webhook.review import ReviewOutcome, ReviewResult, Subject

GOLDEN = Path(__file__).with_name("metrics.golden.txt")


def test_the_page_is_as_reviewed() -> None:
    """One whole page, compared as it was read and agreed to."""
    metrics = Metrics(("observe", "cap", "evict", "bindings"))
    metrics.count_load("swapped")
    metrics.add_gauges(
        Gauge(EXPIRY, "Seconds until the serving certificate expires.", lambda: 86400.5),
        Gauge(READY, "Whether /readyz says yes.", lambda: True),
        Gauge(SILENCE, "Silence.", lambda: {"nodes": 1.5, "namespaces": 60.0}, "source"),
    )
    metrics.count("cap", ReviewOutcome(ReviewResult.REWRITTEN, operations=3, warnings=2), 0.0007)
    metrics.count("cap", ReviewOutcome(ReviewResult.UNCHANGED), 0.0002)
    metrics.count("bindings", ReviewOutcome(ReviewResult.SKIPPED, reason="api-slow"), 3.0)

    assert GOLDEN.read_text(encoding="utf-8") == metrics.page()


def test_an_unknown_number_has_no_line() -> None:
    """What is not known is absent, and never zero."""
    assert "# HELP g G.\n# TYPE g gauge\n" == write_page([Gauge("g", "G.", lambda: None).family()])


def accounted(outcome: ReviewOutcome, level: int = logging.INFO) -> list[dict[str, Any]]:
    """Return the lines that a request leaves."""
    stream = io.BytesIO()
    Account(Metrics(("cap",)), RequestLog(level, stream))("cap", outcome, 0.00123)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_of_json() -> None:
    """The log has one object for a request, with all that the outcome knows."""
    subject = Subject("uid-1", "team-a", "trainer", dry_run=True)
    outcome = ReviewOutcome(
        ReviewResult.REWRITTEN, subject, "namespace-unknown", "3 GiB of a T4", 4, 1
    )
    (line,) = accounted(outcome)
    del line["time"]

    assert {
        "level": "info",
        "logger": "webhook.requests",
        "message": "request",
        "hook": "cap",
        "result": "rewritten",
        "uid": "uid-1",
        "namespace": "team-a",
        "name": "trainer",
        "milliseconds": 1.23,
        "reason": "namespace-unknown",
        "detail": "3 GiB of a T4",
        "operations": 4,
        "warnings": 1,
        "dryRun": True,
    } == line


@pytest.mark.parametrize(
    ("level", "result"),
    [
        ("error", ReviewResult.FAILED),
        ("warning", ReviewResult.REJECTED),
        ("info", ReviewResult.REFUSED),
    ],
)
def test_the_level_says_whose_trouble_it_is(level: str, result: ReviewResult) -> None:
    """Our bugs are errors, strangers are warnings, and a refused wish is everyday life."""
    assert [level] == [line["level"] for line in accounted(ReviewOutcome(result))]


def test_a_quiet_log_has_no_everyday_lines() -> None:
    """At level warning only what is out of order is written."""
    assert [] == accounted(ReviewOutcome(ReviewResult.REWRITTEN), logging.WARNING)
