"""The last resort: only the process that was judged gets the signal, on real processes."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def changed(pid: int, **more: Any) -> Processes:
    return Processes({pid: process_of(POD, pid)._replace(**more)})


@pytest.mark.parametrize(
    ("change", "now"),
    [
        ({}, lambda pid: changed(pid, started_ticks=7)),
        ({}, lambda pid: changed(pid, owner=None)),
        ({}, lambda _: Processes()),
        ({"confirmed": False}, None),
        ({"pod_uid": "uid-b"}, None),
        ({"occupant": None}, None),
    ],
    ids=["reused", "moved", "hidden", "seen once", "of another pod", "unknown to the kernel"],
)
def test_what_is_not_certainly_the_same_is_spared(
    sleeper: subprocess.Popen[bytes],
    change: dict[str, object],
    now: Callable[[int], Processes] | None,
) -> None:
    """A PID that changed hands since the verdict, or was never certain, gets no signal."""
    judged_then = judged(sleeper.pid)._replace(**change)  # type: ignore[arg-type] # any field
    answer, _ = kill(judged_then, now=None if now is None else now(sleeper.pid))

    assert Answer.GONE == answer
    assert None is sleeper.poll()


def test_a_process_that_is_gone_is_no_trouble(sleeper: subprocess.Popen[bytes]) -> None:
    """One that has ended by itself, or was never known, needs no signal."""
    sleeper.kill()
    sleeper.wait()

    assert Answer.GONE == kill(judged(sleeper.pid))[0]
    assert Answer.GONE == LastResort(Processes())(Verdict(POD, Outcome.STUCK)).answer


@pytest.mark.parametrize(
    ("trouble", "answer", "said"),
    [
        (errno.EPERM, Answer.FAILED, "capability KILL"),
        (errno.EINVAL, Answer.FAILED, "Invalid argument"),
        (errno.ESRCH, Answer.GONE, ""),
    ],
    ids=["rights", "other", "ended at the last moment"],
)
def test_a_signal_that_the_kernel_refuses_is_told(
    sleeper: subprocess.Popen[bytes], trouble: int, answer: Answer, said: str
) -> None:
    """
    A process that may not be signalled makes the act fail, with the remedy where there is one.
    """

    def send(_pinned: int, _number: int) -> None:
        raise OSError(trouble, os.strerror(trouble))

    living = {sleeper.pid: process_of(POD, sleeper.pid)}
    result = LastResort(Processes(living), send)(verdict(judged(sleeper.pid)))

    assert answer == result.answer
    assert said in result.detail
