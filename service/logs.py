"""One JSON object for each line of the log, whoever wrote it: our code or a library."""

from __future__ import annotations

import json
import logging
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpufence.settings import unknown_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LEVELS: Final = ("debug", "info", "warning", "error")
_LONGEST_CHARACTERS = 2000


class JsonLines(logging.Formatter):
    """Write a record as one line; `extra={"fields": {...}}` adds fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": moment(record.created),
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
    """Send everything to stderr, in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def tell_settings(
    program: str,
    settings: type,
    shown: Mapping[str, object],
    environ: Mapping[str, str],
    known: Collection[str] = (),
) -> None:
    """Log what is set, and which variables set nothing."""
    logger = logging.getLogger(__name__)
    logger.info("settings", extra={"fields": shown})
    for variable in unknown_settings(settings, environ):
        if variable not in known:
            logger.warning(
                "%s is no setting of the %s; see gpufence-%s --help", variable, program, program
            )


def moment(seconds: float) -> str:
    """Write a time of the system's clock as all lines do: RFC 3339 in UTC, with milliseconds."""
    whole = int(seconds)
    return f"{_clock(whole)}.{int((seconds - whole) * 1000):03d}Z"


@lru_cache(maxsize=1)
def _clock(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
