"""What every program writes: metrics, which keep to conventions, its log, and what was meant."""

import argparse
import gc
import json
import logging
import subprocess
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from agent.__main__ import _parser as agent
from certs.__main__ import _parser as certs
from controller.__main__ import _parser as controller
from kubectl_gpufence import gpushare, verbs
from service.command import exit_code
from service.exposition import Distribution, Family, Histogram, Metric, write_page
from service.itself import Itself
from service.logs import JsonLines
from service.renamed import Renamed, age, left, with_old_names
from tests.support.metric_names import pages
from tests.support.metric_rules import problems
from tests.support.running import program
from webhook.__main__ import main as run_webhook
from webhook.__main__ import parser as webhook

HEAD = "# HELP gpufence_a_bytes One\n# TYPE gpufence_a_bytes gauge\n"


@pytest.mark.parametrize(
    "broken",
    [
        "gpufence_a_bytes 1",
        "# HELP gpufence_a_bytes One\n# TYPE gpufence_b_bytes gauge\n",
        "# HELP gpufence_a_bytes one\n",
        "# HELP gpufence_a_bytes One.\n",
        "# HELP other_bytes One\n# TYPE other_bytes gauge\n",
        "# HELP gpufence_a One\n# TYPE gpufence_a gauge\n",
        "# HELP gpufence_age_seconds One\n# TYPE gpufence_age_seconds gauge\n",
        "# HELP gpufence_a Deprecated, use gpufence_b\n# TYPE gpufence_a gauge\n",
        "# HELP gpufence_a_bytes One\n# TYPE gpufence_a_bytes counter\n",
        f"{HEAD}gpufence_a_bytes one\n",
        f"{HEAD}gpufence_a_bytes 1\ngpufence_a_bytes 1\n",
        f'{HEAD}gpufence_a_bytes{{outcome="not renewed"}} 1\n',
        'gpufence_a_bytes{x="a"b"} 1\n',
    ],
)
def test_the_lint_finds_what_it_is_for(broken: str) -> None:
    """Each mistake that the lint exists for is found."""
    assert [] != list(problems(broken))


@pytest.mark.parametrize("name", pages())
def test_a_page_keeps_to_the_conventions(name: str) -> None:
    """Help, type, unit, words as values of labels, and no line twice."""
    assert [] == list(problems(pages()[name]))


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("name", pages())
def test_promtool_finds_nothing(name: str) -> None:
    """Prometheus' own lint has nothing to say of a page."""
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=pages()[name],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stdout + done.stderr)


def test_a_program_says_what_it_takes() -> None:
    """The figures of a process are those that the kernel has of it."""
    found = {family.name: family.values[0] for family in Itself("agent").families()}
    labels, always = found["gpufence_build_info"]

    assert ("agent", 1.0) == (labels["program"], always)
    assert (found["process_resident_memory_bytes"][1] or 0) > 1 << 20
    assert (found["process_open_fds"][1] or 0) >= 3


def test_old_names_have_their_old_figures() -> None:
    """An age, a time that is left and a word with blanks are what they were, beside the new."""
    new: list[Metric] = [
        Family("a", "gauge", "A", (({}, 990.0),)),
        Family("b", "gauge", "B", (({}, 1010.0), ({"x": "1"}, None))),
        Family("c", "gauge", "C", (({"outcome": "not_renewed"}, 2.0),)),
        Histogram("d", "D", (({}, Distribution((1.0,))),)),
    ]
    rows = [Renamed("o", "a", age), Renamed("p", "b", left), Renamed("q", "c", blanks=True)]
    lines = write_page(with_old_names(new, rows, 1000.0)).splitlines()

    assert "# HELP o Deprecated, use a" in lines
    assert ["o 10", "p 10", 'q{outcome="not renewed"} 2'] == [
        line for line in lines if line[0] in "opq"
    ]


def test_all_lines_may_share_labels() -> None:
    """What every line has comes behind what it has of its own."""
    family = Family("a", "gauge", "A", (({}, 1.0), ({"x": "1"}, 2.0)))

    expected = ['a{node="n1"} 1', 'a{x="1",node="n1"} 2']
    assert expected == write_page([family], {"node": "n1"}).splitlines()[2:]


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


Parse = Callable[[list[str]], argparse.Namespace]
PROGRAMS: dict[str, tuple[Parse, list[str], str]] = {
    "agent": (agent().parse_args, ["chekc"], "check"),
    "agent's option": (agent().parse_args, ["check", "--ouput=json"], "--output"),
    "certs": (certs().parse_args, ["rotate", "--ca", "--endpiont=x"], "--endpoints"),
    "certs' command": (certs().parse_args, ["statsu"], "status"),
    "controller": (controller().parse_args, ["rnu"], "run"),
    "webhook": (webhook().parse_args, ["rewrite", "-f", "-", "--mode", "evcit"], "evict"),
    "webhook's option": (webhook().parse_args, ["rewrite", "-f", "-", "--strit"], "--strict"),
    "plugin": (verbs.parse, ["doctr"], "doctor"),
    "gpushare": (gpushare.parse, ["--detials"], "--details"),
}


@pytest.mark.parametrize(("parse", "typed", "meant"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_may_have_been_meant_is_named(
    parse: Parse, typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong command, option or choice ends with 2, and with the nearest right one."""
    with pytest.raises(SystemExit) as ended:
        parse(typed)

    assert 2 == ended.value.code
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_a_webhook_that_cannot_serve_leaves_the_collector_on() -> None:
    """It loads without one; a setting that cannot work ends it before it would serve."""
    code = run_webhook(["serve"], {"GPUFENCE_LISTEN": "nowhere"})

    assert (2, True) == (code, gc.isenabled())
