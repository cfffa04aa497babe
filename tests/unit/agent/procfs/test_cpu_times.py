"""What processes have used of the CPU, by their lines and by their clocks."""

import os
import subprocess
import time
from pathlib import Path

from agent.model.use import CpuTime
from agent.procfs.lookup import Lookup, cpu_clock
from tests.unit.agent.procfs.test_parse import line


def test_cpu_time_of_a_process(proc: Path) -> None:
    """
    What a process used of the CPU comes with its start, so that another one is not taken for it.
    """
    assert {17: CpuTime(4711, 0.29)} == Lookup(proc, 100).cpu_times([17, 18])


def test_cpu_time_of_a_true_process_grows() -> None:
    """The kernel's own figures grow while one computes."""
    lookup, me = Lookup(), os.getpid()
    before = lookup.cpu_times([me])[me]
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    after = lookup.cpu_times([me])[me]

    assert before.started_ticks == after.started_ticks
    assert 0.05 <= after.seconds - before.seconds


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


def test_a_clock_of_nobody() -> None:
    """A PID that nobody has has no clock."""
    assert cpu_clock(2**22) is None
