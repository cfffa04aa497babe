"""The last resort: only the process that was judged gets the signal, on real processes."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.loop.worker import LastResort
from agent.model.decision import Action, Answer, Outcome, Verdict
from agent.model.use import ProcessUse
from agent.procfs.lookup import Lookup
from tests.support.agent.builders import on_card, pod, process_of
from tests.support.agent.node import Processes
from tests.support.observing import eventually

POD = pod("stuck", terminating=True)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of our own that ignores everything but SIGKILL."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def verdict(*processes: ProcessUse) -> Verdict:
    use = on_card(POD, 1, *processes)
    return Verdict(POD, Outcome.STUCK, use=use, action=Action.KILL)


def judged(pid: int) -> ProcessUse:
    return ProcessUse(pid, 1, process_of(POD, pid), POD.uid, "main", confirmed=True)


def kill(process: ProcessUse, *, now: Processes | None = None) -> tuple[Answer, str]:
    """Try it while the kernel says what it said when the process was judged, or something else."""
    living = {} if process.occupant is None else {process.pid: process.occupant}
    result = LastResort(now or Processes(living))(verdict(process))
    return result.answer, result.detail


def test_the_process_that_was_judged_is_killed(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that is still the same gets SIGKILL."""
    answer, detail = kill(judged(sleeper.pid))

    assert (Answer.ACCEPTED, f"killed PID {sleeper.pid}") == (answer, detail)
    assert -9 == sleeper.wait(20)


def test_a_process_without_its_first_thread_is_killed() -> None:
    """
    Who goes on in another thread than its first, which is a zombie, gets SIGKILL like any other.
    """
    program = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=[60]).start()"
    )
    program += "; ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        assert eventually(lambda: ") Z " in stat.read_text())
        lookup = Lookup()
        seen = lookup.look(process.pid)
        judged = ProcessUse(process.pid, 1, seen, POD.uid, "main", confirmed=True)
        result = LastResort(lookup)(verdict(judged))
        killed = eventually(lambda: process.poll() is not None)
        process.kill()

    assert Answer.ACCEPTED is result.answer
    assert killed


@pytest.mark.parametrize("reused", [True, False], ids=["reused", "moved"])
def test_whoever_has_the_pid_by_now_is_spared(
    sleeper: subprocess.Popen[bytes], *, reused: bool
) -> None:
    """A PID that changed hands since the verdict gets no signal."""
    now = process_of(POD, sleeper.pid)
    now = now._replace(started_ticks=7) if reused else now._replace(owner=None)
    answer, _ = kill(judged(sleeper.pid), now=Processes({sleeper.pid: now}))

    assert Answer.GONE == answer
    assert None is sleeper.poll()


@pytest.mark.parametrize(
    "change", [{"confirmed": False}, {"pod_uid": "uid-b"}, {"occupant": None}], ids=str
)
def test_what_was_not_certain_is_spared(
    sleeper: subprocess.Popen[bytes], change: dict[str, object]
) -> None:
    """A process seen once, of another pod, or unknown to the kernel gets no signal."""
    answer, _ = kill(judged(sleeper.pid)._replace(**change))  # type: ignore[arg-type] # any field

    assert Answer.GONE == answer
    assert None is sleeper.poll()


def test_a_process_that_is_gone_is_no_trouble(sleeper: subprocess.Popen[bytes]) -> None:
    """Who has ended by itself in the meantime is gone."""
    sleeper.kill()
    sleeper.wait()

    assert Answer.GONE == kill(judged(sleeper.pid))[0]


def test_a_process_that_the_kernel_hides_is_spared(sleeper: subprocess.Popen[bytes]) -> None:
    """Who cannot be looked at right before the signal gets none."""
    answer, _ = kill(judged(sleeper.pid), now=Processes())

    assert Answer.GONE == answer
    assert None is sleeper.poll()


def test_a_verdict_without_processes_kills_nobody() -> None:
    """Where no use is known there is nobody to kill."""
    assert Answer.GONE == LastResort(Processes())(Verdict(POD, Outcome.STUCK)).answer


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [(errno.EPERM, "capability KILL"), (errno.EINVAL, "Invalid argument")],
    ids=["rights", "other"],
)
def test_a_signal_that_the_kernel_refuses_is_told(
    sleeper: subprocess.Popen[bytes], trouble: int, expected: str
) -> None:
    """
    A process that may not be signalled makes the act fail, with the remedy where there is one.
    """

    def send(_pinned: int, _number: int) -> None:
        raise OSError(trouble, os.strerror(trouble))

    living = {sleeper.pid: process_of(POD, sleeper.pid)}
    result = LastResort(Processes(living), send)(verdict(judged(sleeper.pid)))

    assert Answer.FAILED == result.answer
    assert expected in result.detail


def test_a_process_that_ends_at_the_last_moment_is_gone(
    sleeper: subprocess.Popen[bytes],
) -> None:
    """Who ends between the look and the signal was not killed by us."""

    def send(_pinned: int, _number: int) -> None:
        raise ProcessLookupError

    living = {sleeper.pid: process_of(POD, sleeper.pid)}
    result = LastResort(Processes(living), send)(verdict(judged(sleeper.pid)))

    assert Answer.GONE == result.answer
