"""Processes are looked up so that neither reused PIDs nor dying processes are mistaken."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.model.use import CpuTime, Occupant, Owner
from agent.procfs.lookup import KEPT_SECONDS, MOST_THREADS, Lookup, Pins, cpu_clock
from tests.support.agent.node import Clock
from tests.support.agent.world import sizes
from tests.support.observing import eventually
from tests.unit.agent.procfs.test_parse import ID, NEXT, OTHER, UID, line

OURS = f"0::/kubepods/pod{UID}/{ID}\n"
THEIRS = f"0::/kubepods/pod{OTHER}/{NEXT}\n"


def write(proc: Path, *, stat: str = "", cgroup: str = OURS) -> None:
    folder = proc / "17"
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(stat or line())
    (folder / "cgroup").write_text(cgroup)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return a /proc with process 17 in a container."""
    write(tmp_path)
    return tmp_path


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Show a true process of a container in a folder whose PIDs are those of the kernel."""
    with subprocess.Popen(["sleep", "60"]) as process:
        folder = tmp_path / f"{process.pid}"
        folder.mkdir()
        (tmp_path / "self").symlink_to("/proc/self")
        (folder / "stat").symlink_to(f"/proc/{process.pid}/stat")
        (folder / "cgroup").write_text(OURS)
        yield process
        process.kill()


def test_process_of_a_container(proc: Path) -> None:
    """
    A living process is known by PID, start and owner; its start is taken as late as it can be.
    """
    expected = Occupant(17, 4711, 47.12, Owner(UID, ID), "python3")

    assert {17: expected} == Lookup(proc, 100).occupants([17])


def threads(proc: Path, **states: str) -> None:
    """Have the first thread of process 17 ended, and others in these states."""
    write(proc, stat=line(state="Z"))
    for thread, state in states.items():
        folder = proc / "17" / "task" / thread.removeprefix("t")
        folder.mkdir(parents=True)
        (folder / "stat").write_text(line(state=state, started="5000"))
        (folder / "cgroup").write_text(OURS)


def unreadable(proc: Path) -> None:
    (proc / "17" / "cgroup").unlink()
    (proc / "17" / "cgroup").mkdir()


@pytest.mark.parametrize(
    "ends",
    [
        lambda proc: (proc / "17" / "stat").unlink(),
        lambda proc: (proc / "17" / "cgroup").unlink(),
        unreadable,
        lambda proc: write(proc, stat=line(state="Z")),
        lambda proc: threads(proc, t17="Z"),
        lambda proc: write(proc, cgroup=OURS * 4000),
    ],
    ids=[
        *("no stat", "no cgroup", "a read that fails", "a zombie, which no eviction frees"),
        *("threads that have all ended", "a file longer than any kernel writes"),
    ],
)
def test_process_that_has_ended(proc: Path, ends: Callable[[Path], object]) -> None:
    """What ends between two reads, or cannot be read, is no process of any pod."""
    ends(proc)

    assert Lookup(proc, 100).look(17) is None
    assert {} == Lookup(proc, 100).occupants([18])


@pytest.mark.parametrize("leader", [OURS, "4:memory:/\n0::/\n"], ids=["cgroup v2", "cgroup v1"])
def test_process_whose_first_thread_has_ended(proc: Path, leader: str) -> None:
    """A process lives while any of its threads does, and is in the cgroup of that one."""
    threads(proc, t17="Z", t18="X", t19="S")
    (proc / "17" / "cgroup").write_text(leader)

    assert Occupant(17, 4711, 47.12, Owner(UID, ID), "python3") == Lookup(proc, 100).look(17)


def test_process_of_more_threads_than_are_looked_at(proc: Path) -> None:
    """A process hides no living thread behind many that have ended."""
    threads(proc, **{f"t{thread + 17}": "Z" for thread in range(MOST_THREADS)})

    assert Lookup(proc, 100).look(17) is not None


@pytest.fixture
def headless() -> Iterator[subprocess.Popen[bytes]]:
    """A true process whose first thread has ended while another one runs on."""
    program = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=[60]).start()"
    )
    program += "; ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        assert eventually(lambda: ") Z " in stat.read_text())
        yield process
        process.kill()


def test_true_process_whose_first_thread_has_ended(headless: subprocess.Popen[bytes]) -> None:
    """
    The kernel's own zombie with a thread is known, pinned like any other, and gone with its end.
    """
    lookup = Lookup()
    looks = [lookup.occupants([headless.pid]) for _ in range(3)]
    headless.kill()
    headless.wait()

    assert [[headless.pid]] * 3 == [list(look) for look in looks]
    assert {} == lookup.occupants([headless.pid])


def test_pid_reused_between_two_reads(proc: Path) -> None:
    """A PID whose start time changes while its cgroup is read is nobody's."""
    pipe = proc / "17" / "cgroup"
    pipe.unlink()
    os.mkfifo(pipe)

    def replace() -> None:
        with pipe.open("w") as file:  # opens once the reader has, who has read the start by then
            (proc / "17" / "stat").write_text(line(started="9999"))
            file.write(OURS)

    writer = threading.Thread(target=replace)
    writer.start()
    found = Lookup(proc, 100).look(17)
    writer.join()

    assert found is None


def test_reused_pid_is_read_again(proc: Path) -> None:
    """An owner is kept for the process, not for its PID."""
    lookup = Lookup(proc, 100)
    lookup.occupants([17])
    write(proc, stat=line(started="9999"), cgroup=THEIRS)

    assert Owner(OTHER, NEXT) == lookup.occupants([17])[17].owner


def test_known_owner_is_kept(proc: Path) -> None:
    """The owner of a process once known is not read again, except by a look."""
    lookup = Lookup(proc, 100)
    before = lookup.occupants([17])[17]
    (proc / "17" / "cgroup").unlink()

    assert before is lookup.occupants([17])[17]
    assert lookup.look(17) is None
    assert {} == lookup.occupants([17])


def test_process_on_its_way_into_its_container(proc: Path) -> None:
    """A process that is nobody's yet is read again until it is in its container."""
    lookup = Lookup(proc, 100)
    write(proc, cgroup="0::/system.slice/containerd.service\n")
    first = lookup.occupants([17])[17]
    write(proc)

    assert first.owner is None
    assert Owner(UID, ID) == lookup.occupants([17])[17].owner


def test_file_longer_than_one_read(proc: Path) -> None:
    """A cgroup file of many lines is read to its end, where the line stands that tells."""
    write(proc, cgroup="4:memory:/\n" * 2000 + OURS)
    found = Lookup(proc, 100).look(17)

    assert found is not None
    assert Owner(UID, ID) == found.owner


def test_many_processes_are_read_once(tmp_path: Path) -> None:
    """The owners of many processes are read once, not at every look."""
    lookup, pids = Lookup(tmp_path, 100), range(17, 17 + 500)
    write(tmp_path)
    for pid in pids[1:]:
        (tmp_path / f"{pid}").symlink_to(tmp_path / "17")
    lookup.occupants(pids)
    (tmp_path / "17" / "cgroup").unlink()

    assert len(pids) == len(lookup.occupants(pids)) == len(lookup.occupants(pids))


def test_a_process_met_twice_is_not_read_again(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """
    A process that is the same at a second look is known until the kernel says that it has ended.
    """
    lookup = Lookup(tmp_path)
    known = [lookup.occupants([sleeper.pid]) for _ in range(2)][-1]
    (tmp_path / f"{sleeper.pid}" / "stat").unlink()

    assert known == lookup.occupants([sleeper.pid])
    sleeper.kill()
    assert eventually(lambda: lookup.occupants([sleeper.pid]) == {})


@pytest.mark.parametrize("most", [{"most_pinned": 0}, {"most_remembered": 0}])
def test_processes_held_are_bounded(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, most: dict[str, Any]
) -> None:
    """Where no file descriptor may be held for a process, it is read each time."""
    lookup = Lookup(tmp_path, **most)
    before = [lookup.occupants([sleeper.pid]) for _ in range(3)]
    (tmp_path / f"{sleeper.pid}" / "stat").unlink()

    assert before[0] == before[2]
    assert {} == lookup.occupants([sleeper.pid])


def test_a_process_that_is_gone_cannot_be_held() -> None:
    """A PID of no process is not pinned, its end is not waited for, and it has no clock."""
    pins = Pins(1)
    pins.add(2**22)

    assert 2**22 not in pins
    assert [] == pins.ended()
    assert cpu_clock(2**22) is None


def test_true_proc() -> None:
    """Under the true /proc a process started in the past, keeps its start, and uses the CPU."""
    lookup, me = Lookup(), os.getpid()
    found = lookup.look(me)
    before = lookup.cpu_times([me])[me]
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    after = lookup.cpu_times([me])[me]

    assert found is not None
    assert found.started_by <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert found == lookup.look(me)
    assert before.started_ticks == after.started_ticks
    assert 0.05 <= after.seconds - before.seconds


def test_cpu_time_of_a_process(proc: Path) -> None:
    """
    What a process used of the CPU comes with its start, so that another one is not taken for it.
    """
    assert {17: CpuTime(4711, 0.29)} == Lookup(proc, 100).cpu_times([17, 18])


def test_cpu_time_of_a_process_that_is_held_comes_from_its_clock(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Of a process that is held nothing is read, and the figure is the one that its line has."""
    lookup, pid = Lookup(tmp_path), sleeper.pid
    lookup.occupants([pid])
    line_has = Lookup(tmp_path).cpu_times([pid])[pid]
    lookup.cpu_times([pid])
    (tmp_path / f"{pid}" / "stat").unlink()
    clock_has = lookup.cpu_times([pid])[pid]

    assert line_has.started_ticks == clock_has.started_ticks
    assert 0 <= clock_has.seconds - line_has.seconds < 0.1


def test_cpu_time_of_a_process_that_has_ended_is_its_last_line(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The clock of a PID whose process has ended does not count, for it may be another's by now."""
    lookup, pid = Lookup(tmp_path), sleeper.pid
    lookup.occupants([pid])
    before = lookup.cpu_times([pid])
    sleeper.kill()
    sleeper.wait()
    (tmp_path / f"{pid}" / "stat").unlink()
    (tmp_path / f"{pid}" / "stat").write_text(line())

    assert [pid] == list(before)
    assert {pid: CpuTime(4711, 0.29)} == lookup.cpu_times([pid])


def test_cpu_time_of_a_pid_with_another_process(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """A PID that has another process than it was known by is not held as that one."""
    lookup, stat = Lookup(tmp_path, 100), tmp_path / f"{sleeper.pid}" / "stat"
    true = stat.readlink()
    stat.unlink()
    stat.write_text(line())
    lookup.occupants([sleeper.pid])
    stat.unlink()
    stat.symlink_to(true)
    found = lookup.cpu_times([sleeper.pid])[sleeper.pid]

    assert Lookup(tmp_path, 100).cpu_times([sleeper.pid])[sleeper.pid] == found
    assert found.started_ticks != 4711


def test_processes_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    """A process that ended before it was met twice is forgotten after two minutes."""
    clock = Clock()
    lookup = Lookup(tmp_path, 100, clock=clock)
    known = []
    for pid in range(100, 400):
        folder = tmp_path / f"{pid}"
        folder.mkdir()
        (folder / "stat").write_text(line())
        (folder / "cgroup").write_text(OURS)
        lookup.occupants([pid])
        (folder / "stat").unlink()
        clock.now += KEPT_SECONDS / 10
        known.append(sum(sizes(lookup).values()))

    assert max(known[:50]) >= max(known[-50:])
