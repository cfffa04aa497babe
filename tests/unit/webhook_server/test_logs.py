"""
The lines of the log.
"""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

from webhook.account import Account
from webhook.logs import LineLog
from webhook.metrics import Metrics
from webhook.outcome import Outcome, Result, Subject


def accounted(outcome: Outcome, level: int = logging.INFO) -> list[dict[str, Any]]:
    """
    Return the lines that a request leaves.
    """
    stream = io.BytesIO()
    Account(Metrics(()), LineLog(level, stream))("cap", outcome, 0.00123)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_of_json() -> None:
    """
    The log has one object for a request, with all that the outcome knows.
    """
    subject = Subject("uid-1", "team-a", "trainer", dry_run=True)
    outcome = Outcome(Result.REWRITTEN, subject, "namespace-unknown", "3 GiB of a T4", 4, 1)
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
    [("error", Result.FAILED), ("warning", Result.REJECTED), ("info", Result.REFUSED)],
)
def test_the_level_says_whose_trouble_it_is(level: str, result: Result) -> None:
    """
    Our bugs are errors, strangers are warnings, and a refused wish is everyday life.
    """
    assert [level] == [line["level"] for line in accounted(Outcome(result))]


def test_a_quiet_log_has_no_everyday_lines() -> None:
    """
    At level warning only what is out of order is written.
    """
    assert [] == accounted(Outcome(Result.REWRITTEN), logging.WARNING)
