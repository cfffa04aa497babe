"""
One JSON object for each line of the log, whoever wrote it: our code, kube or the web server.
"""

from __future__ import annotations

import logging
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS = ("debug", "info", "warning", "error")
_NAMES = {logging.getLevelNamesMapping()[name.upper()]: name for name in LEVELS}
_LONGEST_CHARACTERS = 2000


class LineLog:
    """
    Writes a line for each request, in the form of all others but past the logging module, whose
    own part would be as much as that of reading the review.
    """

    def __init__(self, level: int, stream: BinaryIO) -> None:
        self.level = level
        self._stream = stream

    def write(self, level: int, message: str, fields: Mapping[str, object]) -> None:
        line = {
            "time": _moment(time.time()),
            "level": _NAMES.get(level, "error"),
            "logger": "webhook.requests",
            "message": message,
            **fields,
        }
        self._stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        self._stream.flush()


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
        return orjson.dumps(line, default=str).decode()


def start_logging(level: str) -> LineLog:
    """
    Send everything to stderr, in one form; return the log of requests.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Starting and stopping are told by us, with the addresses and the reasons.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, root.level))
    return LineLog(root.level, sys.stderr.buffer)


def _moment(seconds: float) -> str:
    whole = int(seconds)
    return f"{_clock(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(maxsize=1)
def _clock(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
