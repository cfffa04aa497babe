"""
The page of metrics and the line of the log.
"""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from webhook.logs import JsonLines
from webhook.metrics import EXPIRY, READY, SILENCE, Metrics
from webhook.outcome import Outcome, Result, Subject
from webhook.registry import Counter, Gauge, write_page

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).with_name("metrics.golden.txt")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """
    Lend what the requests' logger writes.
    """
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("webhook.requests")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def test_the_page_is_as_reviewed() -> None:
    """
    One whole page, compared as it was read and agreed to.
    """
    metrics = Metrics(("observe", "cap", "evict", "bindings"))
    metrics.loads.add("swapped")
    metrics.add_gauge(EXPIRY, "Seconds until the serving certificate expires.", lambda: 86400.5)
    metrics.add_gauge(READY, "Whether /readyz says yes.", lambda: True)
    metrics.add_gauge(SILENCE, "Silence.", lambda: {"nodes": 1.5, "namespaces": 60.0}, "source")
    metrics.account("cap", Outcome(Result.REWRITTEN, operations=3, warnings=2), 0.0007)
    metrics.account("cap", Outcome(Result.UNCHANGED), 0.0002)
    metrics.account("bindings", Outcome(Result.SKIPPED, reason="api-slow"), 3.0)

    assert GOLDEN.read_text(encoding="utf-8") == metrics.page()


def test_label_values_are_escaped() -> None:
    """
    A value cannot end its line or its quotes.
    """
    counter = Counter("a_total", "A.", ("l",))
    counter.add('x"\\\ny')

    assert 'a_total{l="x\\"\\\\\\ny"} 1' in write_page([counter]).splitlines()


def test_an_unknown_number_has_no_line() -> None:
    """
    What is not known is absent, and never zero.
    """
    assert "# HELP g G.\n# TYPE g gauge\n" == write_page([Gauge("g", "G.", lambda: None)])


def test_a_counter_without_labels_starts_at_zero() -> None:
    """
    A number that nothing has happened to yet is on the page.
    """
    assert "n_total 0" in write_page([Counter("n_total", "N.")]).splitlines()


def test_a_request_is_one_line_of_json(log: io.StringIO) -> None:
    """
    The log has one object for a request, with all that the outcome knows.
    """
    subject = Subject("uid-1", "team-a", "trainer", dry_run=True)
    outcome = Outcome(Result.REWRITTEN, subject, "namespace-unknown", "3 GiB of a T4", 4, 1)
    Metrics(()).account("cap", outcome, 0.00123)
    line = json.loads(log.getvalue())
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
    [("error", Result.FAILED), ("warning", Result.REJECTED), ("info", Result.REFUSED)],
)
def test_the_level_says_whose_trouble_it_is(log: io.StringIO, level: str, result: Result) -> None:
    """
    Our bugs are errors, strangers are warnings, and a refused wish is everyday life.
    """
    Metrics(()).account("cap", Outcome(result), 0.1)

    assert level == json.loads(log.getvalue())["level"]


def test_an_exception_stays_in_its_line(log: io.StringIO) -> None:
    """
    A trace is a field, so that one event is one line.
    """
    try:
        int("two\nlines")
    except ValueError:
        logging.getLogger("webhook.requests").exception("it broke")
    (line,) = log.getvalue().splitlines()

    assert "ValueError: invalid literal" in json.loads(line)["trace"]
