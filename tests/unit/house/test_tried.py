"""What a machine lacks is said at the end of a run, and never passed over in silence."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import sentences
from tools import ROOT

COLLECTED = ("-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider")


def test_each_need_has_its_line() -> None:
    """A line says how many tests there are, what is missing, and what to do."""
    assert [
        "not tried: 2 tests for want of bash; install bash",
        "not tried: 1 test for want of promtool; python -m simulator build prometheus",
    ] == sentences({"promtool": 1, "bash": 2})


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_says_what_it_left_out(tmp_path: Path, workers: str) -> None:
    """Where promtool is not, its test is left out and counted, with and without workers."""
    told = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, *COLLECTED, "-n", workers, "tests/manifests/test_alerts.py"],
        cwd=ROOT,
        env=told,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "not tried: 1 test for want of promtool;" in done.stdout
