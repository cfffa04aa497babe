"""How tests run: what is lacking is said, nothing is left behind, and CPU is measured alike."""

import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

from tests.support import observing
from tests.support.observing import quiet_seconds
from tests.support.running import Running, sentences
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


@pytest.mark.parametrize(
    ("said", "status", "expected"),
    [
        ("9 passed in 1s", 0, 0),
        ("not tried: 6 tests for want of chromium; fetch it", 0, 1),
        ("1 failed in 1s", 2, 2),
    ],
)
def test_ci_fails_as_make_test_does_or_where_it_left_something_out(
    tmp_path: Path, said: str, status: int, expected: int
) -> None:
    """The status is that of `make test`, unless something was not tried."""
    make = tmp_path / "make"
    make.write_text(f'#!/bin/sh\n[ "$*" = test ] && echo "{said}"\nexit {status}\n')
    make.chmod(0o755)
    surroundings = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    command = [str(ROOT / ".ci" / "run")]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)

    assert (expected, said) == (done.returncode, done.stdout.splitlines()[0])
    assert [make] == list(tmp_path.iterdir())


CHILD = "import sys; print(); sys.stdin.read()"


def test_a_thread_that_goes_on_is_named() -> None:
    """A thread counts that was not there before."""
    over = threading.Event()
    before = Running.now()
    thread = threading.Thread(target=over.wait, name="straggler")
    thread.start()
    found = before.left()
    over.set()
    thread.join()

    assert ["thread straggler"] == found
    assert [] == before.left()


def test_a_child_that_goes_on_is_named_by_its_command() -> None:
    """A process counts, and one that has ended and is not waited for counts as well."""
    before = Running.now()
    command = [sys.executable, "-uc", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        (running,) = before.left()

    assert f"process {child.pid}: {sys.executable} -uc {CHILD} " == running
    assert [] == before.left()


def test_what_is_about_to_end_is_waited_for() -> None:
    """A thread that ends within seconds was not left behind."""
    before = Running.now()
    threading.Timer(0.05, lambda: None).start()

    assert [] == before.left_for_good()


def _call_often(times: int) -> None:
    for _ in range(times):
        _nothing()


def _nothing() -> None:
    """Do what a tracer is told of."""


def test_a_call_is_told_by_the_yardstick() -> None:
    """Twice the yardstick's own loop takes twice what the yardstick takes on a quiet machine."""
    told = quiet_seconds(observing._yardstick, lambda: 2 * observing._STEPS, rounds=40)

    assert 1.5 * observing.YARDSTICK_SECONDS < told < 3 * observing.YARDSTICK_SECONDS


def test_no_tracer_is_told_of_the_call() -> None:
    """What traces the caller neither sees the call nor is lost by it."""
    seen: list[str] = []

    def trace(frame: FrameType, _event: str, _arg: object) -> None:
        seen.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        quiet_seconds(_call_often, lambda: 10, rounds=1)
        after = sys.gettrace()
    finally:
        sys.settrace(before)

    assert "_nothing" not in seen
    assert "quiet_seconds" in seen
    assert after is trace


def test_no_round_follows_one_that_was_fast_enough() -> None:
    """Measuring ends with the first round that takes less than what is enough."""
    numbers = iter(range(9))
    quiet_seconds(_call_often, lambda: next(numbers), enough=1)

    assert 1 == next(numbers)
