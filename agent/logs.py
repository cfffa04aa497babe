"""
One JSON object for each line of the log, whoever wrote it: our code or kube.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS: Final = ("debug", "info", "warning", "error")
_LONGEST_CHARACTERS = 2000


class JsonLines(logging.Formatter):
    """
    Write a record as one line; `extra={"fields": {...}}` adds fields of its own.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _moment(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_LONGEST_CHARACTERS],
        }
        fields: Mapping[str, object] | None = getattr(record, "fields", None)
        if fields:
            line.update(fields)
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, separators=(",", ":"))


def start_logging(level: str) -> None:
    """
    Send everything to stderr, in one form.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _moment(seconds: float) -> str:
    whole = int(seconds)
    clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    return f"{clock}.{int((seconds - whole) * 1000):03d}Z"
