"""Processes end with those who started them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulator.controlplane import warden
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


ENDLESS = ("sh", "-c", "echo begun; exec sleep 600")
STUBBORN = ("sh", "-c", "trap '' TERM; echo begun; while :; do sleep 1; done")

# Starts a warden whose output is its own, then waits to be killed.
CALLER = """
import os, subprocess, sys
script, leftovers, *command = sys.argv[1:]
subprocess.Popen([sys.executable, script, str(os.getpid()), "5", leftovers, *command])
sys.stdin.read()
"""


@contextmanager
def guarded(*command: str, grace_seconds: float = 5.0) -> Iterator[subprocess.Popen[str]]:
    """Run a command under a warden of ours, and see to it that nothing stays."""
    call = [sys.executable, str(warden.SCRIPT), str(os.getpid()), str(grace_seconds), ""]
    with subprocess.Popen([*call, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait for the command's first words."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_status_is_handed_on(script: str, status: int) -> None:
    """A command that ends by itself gives its status to whoever asked."""
    with guarded("sh", "-c", script) as process:
        assert status == process.wait(60)


def test_stop_signal_reaches_the_command() -> None:
    """SIGTERM to the warden ends the command by SIGTERM."""
    with guarded(*ENDLESS) as process:
        first_line(process)
        process.terminate()

        assert 128 + signal.SIGTERM == process.wait(60)


def test_stubborn_command_is_killed() -> None:
    """A command that ignores SIGTERM is killed when its grace is over."""
    with guarded(*STUBBORN, grace_seconds=0.2) as process:
        first_line(process)
        process.terminate()

        assert 128 + signal.SIGKILL == process.wait(60)


def test_interrupt_of_the_terminal_passes_by() -> None:
    """Ctrl-C in the caller's terminal is the caller's to handle, so the warden ignores SIGINT."""
    with guarded(*ENDLESS) as process:
        first_line(process)
        process.send_signal(signal.SIGINT)
        process.terminate()

        assert 128 + signal.SIGTERM == process.wait(60)


def test_grandchildren_end_too(tmp_path: Path) -> None:
    """What the command started in its group ends with it."""
    mark = str(tmp_path / "mark")
    with guarded("sh", "-c", f"sh -c 'sleep 600; : {mark}' & echo begun; exit 0") as process:
        first_line(process)
        process.wait(60)

        assert eventually(lambda: not processes_naming(f": {mark}"))


def test_killed_warden_takes_the_command_along(tmp_path: Path) -> None:
    """If the warden itself is killed, the kernel kills the command."""
    mark = str(tmp_path / "mark")
    with guarded("sh", "-c", f"echo begun; while :; do sleep 1; done; : {mark}") as process:
        first_line(process)
        process.kill()
        process.wait(60)

        assert eventually(lambda: not processes_naming(mark))


def test_command_survives_the_thread_that_started_it() -> None:
    """The command belongs to the calling process, not to the thread that happened to start it."""
    entered = guarded(*ENDLESS)
    held: list[subprocess.Popen[str]] = []
    starter = threading.Thread(target=lambda: held.append(entered.__enter__()))
    starter.start()
    starter.join()
    try:
        assert "begun" == first_line(held[0])
        assert held[0].poll() is None
    finally:
        entered.__exit__(None, None, None)


def test_killed_caller_leaves_nothing(tmp_path: Path) -> None:
    """When the caller is killed, the command ends and the folder it left is removed."""
    leftovers = tmp_path / "leftovers"
    leftovers.mkdir()
    (leftovers / "file").touch()
    command = ("sh", "-c", f"echo begun; while :; do sleep 1; done; : {leftovers}")
    with subprocess.Popen(
        [sys.executable, "-c", CALLER, str(warden.SCRIPT), str(leftovers), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as caller:
        first_line(caller)
        caller.kill()

        assert eventually(lambda: not leftovers.exists())
        assert eventually(lambda: not processes_naming(str(leftovers)))
