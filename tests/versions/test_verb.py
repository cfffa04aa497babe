"""`make versions`: which minors it takes, how it ends, and what it makes of what tests did."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.site import SINCE
from tests.versions.__main__ import read_chosen
from tests.versions.report import TOKEN, read_junit, row, summary
from tools import ROOT

NEWEST = "1.37"
JUNIT = f"""<testsuites><testsuite>
<testcase name="a"><properties><property name="{TOKEN}read" value="yes"/></properties></testcase>
<testcase name="b"><properties><property name="{SINCE}" value="new"/></properties>
 <skipped type="pytest.xfail"/></testcase>
<testcase name="c"><properties><property name="{SINCE}" value="newer"/></properties>
 <skipped type="pytest.skip"/></testcase>
<testcase name="d"><failure/></testcase>
</testsuite></testsuites>"""
# A test run that is told to stop takes a while to take its cluster away.
TIDY = """
import pathlib, sys, time
try:
    print("runs", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    pathlib.Path(sys.argv[1]).touch()
"""
PARENT = """
import os, sys
from tests.versions.__main__ import run
try:
    run([sys.executable, "-c", *sys.argv[1:]], os.environ)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_every_minor_is_run_unless_some_are_named() -> None:
    """Whoever names none gets all, whoever names some gets those, the oldest first."""
    assert [f"1.{minor}" for minor in range(30, 38)] == read_chosen([], NEWEST)
    assert ["1.30", NEWEST] == read_chosen(["--only", NEWEST, "--only", "1.30"], NEWEST)


def test_an_unknown_minor_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """It is told before anything is built, with those that there are."""
    with pytest.raises(SystemExit) as caught:
        read_chosen(["--only", "1.29"], NEWEST)
    said = capsys.readouterr().err

    assert 2 == caught.value.code
    assert "1.29" in said
    assert "1.30" in said


def test_a_run_is_added_up(tmp_path: Path) -> None:
    """What is missing as expected is counted apart from what was not tried, and from failures."""
    report = tmp_path / "junit.xml"
    report.write_text(JUNIT, encoding="utf-8")
    played = row(read_junit(report), 7, "2026-01-01")

    assert {"new": False} == played["abilities"]
    assert {"read": True} == played["token"]
    assert (
        "Kubernetes 1.31: 1 passed, 1 cannot be, as expected, 1 about something younger, 1 failed;"
        " 7 s"
    ) == summary("1.31", played)


def test_who_stops_it_waits_until_the_tests_have_tidied_up(tmp_path: Path) -> None:
    """The verb tells them once, and leaves nothing of what they had started."""
    tidied = tmp_path / "tidied"
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, TIDY, str(tidied)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    ) as verb:
        assert verb.stdout is not None
        verb.stdout.readline()
        verb.send_signal(signal.SIGINT)
        status = verb.wait()

    assert 130 == status
    assert tidied.exists()
