"""Starting programs and waiting for them."""

import os
import signal
import time
from pathlib import Path

import pytest

from simulator.controlplane.errors import StartError
from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until
from tests.support.observing import PATIENCE_SECONDS, eventually, processes_naming


def surroundings(folder: Path) -> Surroundings:
    """Run programs in a folder of the test's own."""
    return Surroundings(folder, {"PATH": "/usr/bin:/bin"})


def end(process: GuardedProcess) -> None:
    """Stop a program and wait for its end."""
    process.tell_to_stop()
    process.wait_for_end()


def test_program_that_ends_early_is_told(tmp_path: Path) -> None:
    """Waiting for a program that has ended fails at once, with its last words."""
    process = GuardedProcess(["sh", "-c", "echo no such flag; exit 3"], surroundings(tmp_path))

    with pytest.raises(StartError, match=r"sh ended before it was ready; .*\n.*no such flag"):
        wait_until(lambda: False, [process], 60, "it was ready")


def test_program_that_takes_too_long_is_told(tmp_path: Path) -> None:
    """Waiting has a bound, and then tells the last words too."""
    process = GuardedProcess(
        ["sh", "-c", "echo still thinking; exec sleep 600"], surroundings(tmp_path)
    )
    assert eventually(lambda: "still thinking" in process.log_tail())
    try:
        with pytest.raises(StartError, match=r"it was ready: not within 0 s; .*\n.*still thinking"):
            wait_until(lambda: False, [process], 0.1, "it was ready")
    finally:
        end(process)


def test_warden_that_does_not_answer_is_killed(tmp_path: Path) -> None:
    """Even when the warden hangs, the program ends."""
    mark = str(tmp_path / "mark")
    command = f"echo begun; while :; do sleep 1; done; : {mark}"
    process = GuardedProcess(["sh", "-c", command], surroundings(tmp_path))
    assert eventually(lambda: "begun" in process.log_tail())
    for number in processes_naming(mark):
        os.kill(number, signal.SIGSTOP)
    begin = time.monotonic()
    process.tell_to_stop()
    process.wait_for_end(seconds=0.1)

    assert time.monotonic() - begin < PATIENCE_SECONDS
    assert eventually(lambda: not processes_naming(mark))
