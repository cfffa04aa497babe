"""What every program writes: the page of its metrics, and its log."""

import json
import logging
from importlib import import_module
from typing import Any

import pytest

from service.command import exit_code
from service.exposition import Distribution, Family, Histogram, write_page
from service.logs import JsonLines


def test_values_have_a_line_for_each_combination_of_labels() -> None:
    """A family has its help, its type, and a line for each value."""
    family = Family("a_total", "counter", "Things.", (({"x": "1", "y": "2"}, 3.0), ({}, 1.5)))

    expected = (
        '# HELP a_total Things.\n# TYPE a_total counter\na_total{x="1",y="2"} 3\na_total 1.5\n'
    )
    assert expected == write_page([family])


def test_unknown_values_have_no_line() -> None:
    """None is left out, never written as zero."""
    family = Family("a", "gauge", "One.", (({"x": "1"}, None), ({"x": "2"}, 0.0)))

    assert ['a{x="2"} 0'] == write_page([family]).splitlines()[2:]


def test_labels_are_escaped() -> None:
    """Quotes, backslashes and line ends cannot break a line."""
    family = Family("a", "gauge", "One.", (({"x": 'a"b\\c\nd'}, 1.0),))

    assert 'a{x="a\\"b\\\\c\\nd"} 1' == write_page([family]).splitlines()[2]


def test_a_distribution_counts_up_to_its_bounds() -> None:
    """Values count under every bound they do not exceed, and under infinity."""
    values = Distribution((0.1, 1.0)).observed(0.1).observed(0.5).observed(7.0)
    lines = write_page([Histogram("a_seconds", "How long.", (({}, values),))]).splitlines()

    expected = [
        "# HELP a_seconds How long.",
        "# TYPE a_seconds histogram",
        'a_seconds_bucket{le="0.1"} 1',
        'a_seconds_bucket{le="1"} 2',
        'a_seconds_bucket{le="+Inf"} 3',
        "a_seconds_sum 7.6",
        "a_seconds_count 3",
    ]
    assert expected == lines


def test_an_empty_distribution_is_shown_at_zero() -> None:
    """A rate needs the time before the first value, too."""
    metric = Histogram("a", "How long.", (({}, Distribution((1.0,))),))
    lines = write_page([metric]).splitlines()[2:]

    assert ['a_bucket{le="1"} 0', 'a_bucket{le="+Inf"} 0', "a_sum 0", "a_count 0"] == lines


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


def test_a_package_that_is_missing_is_named_with_its_extra(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A program without its packages ends in one line that says what to install."""
    code = exit_code("gpufence-webhook", lambda: int(import_module("no_such_package").__name__))

    remedy = "no_such_package is not installed: pip install 'gpufence[webhook]'"
    assert (2, f"gpufence-webhook: {remedy}\n") == (code, capsys.readouterr().err)
