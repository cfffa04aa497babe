"""
The one place that accounts for a request: one count and one line for each, from one outcome.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from webhook.outcome import Result

if TYPE_CHECKING:
    from webhook.logs import LineLog
    from webhook.metrics import Metrics
    from webhook.outcome import Outcome

_LEVELS = {Result.FAILED: logging.ERROR, Result.REJECTED: logging.WARNING}


class Account:
    """
    Called once for each request, whatever became of it.
    """

    def __init__(self, metrics: Metrics, log: LineLog) -> None:
        self._metrics = metrics
        self._log = log

    def __call__(self, hook: str, outcome: Outcome, seconds: float) -> None:
        self._metrics.count(hook, outcome, seconds)
        level = _LEVELS.get(outcome.result, logging.INFO)
        if level >= self._log.level:
            self._log.write(level, "request", _fields(hook, outcome, seconds))


def _fields(hook: str, outcome: Outcome, seconds: float) -> dict[str, object]:
    subject = outcome.subject
    fields: dict[str, object] = {
        "hook": hook,
        "result": outcome.result.value,
        "uid": subject.uid,
        "namespace": subject.namespace,
        "name": subject.name,
        "milliseconds": round(seconds * 1000, 3),
    }
    if outcome.reason:
        fields["reason"] = outcome.reason
    if outcome.detail:
        fields["detail"] = outcome.detail
    if outcome.operations:
        fields["operations"] = outcome.operations
    if outcome.warnings:
        fields["warnings"] = outcome.warnings
    if subject.dry_run:
        fields["dryRun"] = True
    return fields
