"""The child by itself: what it does with odd lines, and how it ends."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.nvml.child import Child, EndedError
from agent.nvml.faults import Code
from agent.nvml.protocol import (
    Ask,
    NvmlFailure,
    Opened,
    Question,
    read_answer,
    read_line,
    write_question,
)
from agent.nvml.settings import SamplerSettings
from simulator.nvml.build import environment
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State

SECONDS = 30.0
COMMAND = [sys.executable, "-m", "agent.nvml"]
OPEN = write_question(1, Question(Ask.OPEN))
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen({COMMAND!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write({OPEN.encode()!r})
child.stdin.flush()
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def variables(machine: State) -> dict[str, str]:
    """Return an environment in which the dynamic linker finds the simulated library."""
    return {**os.environ, **environment(machine.path)}


def uncovered(variables: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith("COV")}


@pytest.fixture
def child(variables: dict[str, str]) -> Iterator[Child]:
    """Return the parent's end of a child that no coverage slows down."""
    made = Child(SamplerSettings(environment=uncovered(variables)))
    yield made
    made.close()


def run(*arguments: str, lines: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a child on these lines to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=lines,
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def receive(child: Child) -> list[str]:
    """Wait for lines."""
    for _ in range(100):
        lines = child.receive(SECONDS / 100)
        if lines:
            return lines
    raise AssertionError("the child says nothing")


def gone(pid: int) -> bool:
    """Wait for a process to end."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True

    ready, _, _ = select.select([descriptor], [], [], SECONDS)
    os.close(descriptor)
    return bool(ready)


def test_each_line_is_answered_by_a_line(variables: dict[str, str]) -> None:
    """Questions are answered in their order, and the end of the input is a good end."""
    lines = OPEN + write_question(2, Question(Ask.COUNT)) + write_question(3, Question(Ask.OPEN))
    done = run(lines=lines, variables=variables)

    answers = [read_line(line) for line in done.stdout.splitlines()]
    assert [1, 2, 3] == [answer.number for answer in answers]
    assert Opened("580.95.05") == read_answer(answers[0], Ask.OPEN)
    assert (0, "") == (done.returncode, done.stderr)


def test_a_line_that_is_no_question_ends_it(variables: dict[str, str]) -> None:
    """A child that cannot read its parent says so and ends."""
    done = run(lines="[1]\n", variables=variables)

    assert 1 == done.returncode
    assert "is not what the other end writes" in done.stderr
    assert "" == done.stdout


@pytest.mark.parametrize(
    ("question", "code"),
    [(Question(Ask.COUNT), 1), (Question(Ask.LIST, "GPU-0"), 1), (Question(Ask.LOOK, "x"), None)],
)
def test_an_odd_question_is_answered_by_a_failure(
    variables: dict[str, str], question: Question, code: int | None
) -> None:
    """What cannot be answered fails by itself, and the next question is answered."""
    done = run(lines=write_question(1, question) + OPEN, variables=variables)
    first, second = (read_line(line) for line in done.stdout.splitlines())

    failure = read_answer(first, question.ask)
    assert isinstance(failure, NvmlFailure)
    assert code == failure.code
    assert not second.failed


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["one", "two"]])
def test_a_person_is_told_what_it_is(variables: dict[str, str], arguments: list[str]) -> None:
    """Started by hand, it explains itself."""
    done = run(*arguments, lines="", variables=variables)

    assert 2 == done.returncode
    assert "started by the agent" in done.stderr


def test_a_driver_may_print_what_it_likes(variables: dict[str, str]) -> None:
    """What a library writes to stdout goes to stderr, not between the answers."""
    variables["GPUFENCE_SIMULATOR_STATE"] = "/nowhere"
    done = run(lines=OPEN, variables=variables)

    failure = read_answer(read_line(done.stdout), Ask.OPEN)
    assert isinstance(failure, NvmlFailure)
    assert Code.DRIVER_NOT_LOADED == failure.code
    assert "gpufence simulator" in done.stderr


def test_it_ends_with_its_parent(variables: dict[str, str], machine: State) -> None:
    """A parent that is killed takes its child along, even out of a call that never returns."""
    machine.faults.add(Fault(FaultAction.HANG, "nvmlInit"))
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        while not machine.calls("nvmlInit"):
            assert parent.poll() is None
        parent.kill()

    assert gone(pid)


def test_it_is_small(child: Child) -> None:
    """A child that has NVML open stays under 30 MiB, so that both stay under 80."""
    child.send(OPEN)
    receive(child)
    status = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
    kibibytes = next(line.split()[1] for line in status.splitlines() if "VmRSS" in line)

    assert int(kibibytes) < 30 * 1024


@pytest.mark.parametrize(
    ("number", "match"),
    [
        (signal.SIGTERM, r"ended by signal 15 \(Terminated\)"),
        (signal.SIGKILL, "ended by signal 9"),
        (None, "ended with exit code 1"),
    ],
)
def test_its_parent_learns_how_it_ended(
    child: Child, number: signal.Signals | None, match: str
) -> None:
    """By a signal, or an exit code where it gave up; lines for one that is gone are dropped."""
    if number is None:
        child.send("nonsense\n")
    else:
        os.kill(child.pid, number)
    assert gone(child.pid)
    child.send(OPEN)

    with pytest.raises(EndedError, match=match):
        receive(child)


def test_more_than_a_pipe_holds_is_kept_for_later(child: Child, machine: State) -> None:
    """Questions that a busy child has no room for arrive all the same, without waiting for it."""
    child.send(OPEN)
    receive(child)
    machine.faults.add(Fault.delay(0.2, "nvmlDeviceGetCount", None))
    count = 3000
    child.send("".join(write_question(2 + i, Question(Ask.LIST, "x" * 60)) for i in range(count)))
    found = 0
    while found < count:
        found += len(receive(child))

    assert count == found


def test_a_killed_child_is_gone(child: Child) -> None:
    """SIGKILL ends a child that is in no driver."""
    assert child.kill()
    assert child.gone()
