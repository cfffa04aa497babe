"""The form of the log's lines."""

import json
import logging
from typing import Any

from service.logs import JsonLines


def logged(record: logging.LogRecord) -> dict[str, Any]:
    (line,) = JsonLines().format(record).splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def record(message: str, *args: object, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord(
        "kube", logging.WARNING, "file", 1, message, args, more.pop("exc", None)
    )
    made.__dict__.update(more)
    return made


def test_every_library_writes_in_the_same_form() -> None:
    """A record of the logging module becomes the same kind of object."""
    line = logged(record("%s lost", "the watch", created=1.5, fields={"source": "nodes"}))

    assert {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "logger": "kube",
        "message": "the watch lost",
        "source": "nodes",
    } == line


def test_an_exception_stays_in_its_line() -> None:
    """A trace is a field, so that one event is one line."""
    error = ValueError("two\nlines")

    assert "two\nlines" in logged(record("it broke", exc=(ValueError, error, None)))["trace"]
