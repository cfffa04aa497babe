"""
The log of requests, in the same form as all other lines.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, BinaryIO

import orjson

import service.logs
from service.logs import LEVELS, moment

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = {logging.getLevelNamesMapping()[name.upper()]: name for name in LEVELS}


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
            "time": moment(time.time()),
            "level": _NAMES.get(level, "error"),
            "logger": "webhook.requests",
            "message": message,
            **fields,
        }
        self._stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        self._stream.flush()


def start_logging(level: str) -> LineLog:
    """
    Send everything to stderr, in one form; return the log of requests.
    """
    service.logs.start_logging(level)
    root = logging.getLogger()
    # Starting and stopping are told by us, with the addresses and the reasons.
    logging.getLogger("uvicorn.error").setLevel(max(logging.WARNING, root.level))
    return LineLog(root.level, sys.stderr.buffer)
