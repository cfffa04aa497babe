"""
Looking processes up in a folder shaped like /proc, and in the true one.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from agent.model.use import Occupant, Owner
from agent.procfs.lookup import Lookup
from tests.unit.agent.procfs.test_cgroup import ID, NEXT, OTHER, UID
from tests.unit.agent.procfs.test_stat import line

if TYPE_CHECKING:
    from pathlib import Path

OURS = f"0::/kubepods/pod{UID}/{ID}\n"
THEIRS = f"0::/kubepods/pod{OTHER}/{NEXT}\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """
    Return a /proc with process 17 in a container.
    """
    write(tmp_path)
    return tmp_path


def write(proc: Path, *, stat: str = "", cgroup: str = OURS) -> None:
    folder = proc / "17"
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(stat or line())
    (folder / "cgroup").write_text(cgroup)


def test_process_of_a_container(proc: Path) -> None:
    """
    A living process is known by PID, start and owner; its start is taken as late as it can be.
    """
    expected = Occupant(17, 4711, 47.12, Owner(UID, ID), "python3")

    assert {17: expected} == Lookup(proc, 100).occupants([17])


def test_process_that_is_gone(proc: Path) -> None:
    """
    A PID without a folder is nobody's.
    """
    assert {} == Lookup(proc, 100).occupants([18])


@pytest.mark.parametrize("name", ["stat", "cgroup"])
def test_file_that_vanishes(proc: Path, name: str) -> None:
    """
    A process that ends between two reads is nobody's.
    """
    (proc / "17" / name).unlink()

    assert Lookup(proc, 100).look(17) is None


def test_read_that_fails(proc: Path) -> None:
    """
    A file that opens and cannot be read is a process that has just ended.
    """
    (proc / "17" / "cgroup").unlink()
    (proc / "17" / "cgroup").mkdir()

    assert Lookup(proc, 100).look(17) is None


def test_zombie(proc: Path) -> None:
    """
    A zombie is nobody's: no eviction frees what it holds.
    """
    write(proc, stat=line(state="Z"))

    assert Lookup(proc, 100).look(17) is None


def test_pid_reused_between_two_reads(proc: Path) -> None:
    """
    A PID whose start time changes while its cgroup is read is nobody's.
    """
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
    """
    An owner is kept for the process, not for its PID.
    """
    lookup = Lookup(proc, 100)
    lookup.occupants([17])
    write(proc, stat=line(started="9999"), cgroup=THEIRS)

    assert Owner(OTHER, NEXT) == lookup.occupants([17])[17].owner


def test_known_owner_is_kept(proc: Path) -> None:
    """
    The owner of a process once known is not read again, except by a look.
    """
    lookup = Lookup(proc, 100)
    before = lookup.occupants([17])[17]
    (proc / "17" / "cgroup").unlink()

    assert before is lookup.occupants([17])[17]
    assert lookup.look(17) is None
    assert {} == lookup.occupants([17])


def test_process_on_its_way_into_its_container(proc: Path) -> None:
    """
    A process that is nobody's yet is read again until it is in its container.
    """
    lookup = Lookup(proc, 100)
    write(proc, cgroup="0::/system.slice/containerd.service\n")
    first = lookup.occupants([17])[17]
    write(proc)

    assert first.owner is None
    assert Owner(UID, ID) == lookup.occupants([17])[17].owner


def test_file_without_an_end(proc: Path) -> None:
    """
    A cgroup file longer than any kernel writes is not read to its end, and names nobody.
    """
    write(proc, cgroup=OURS * 4000)

    assert Lookup(proc, 100).look(17) is None


def test_file_longer_than_one_read(proc: Path) -> None:
    """
    A cgroup file of many lines is read to its end, where the line stands that tells.
    """
    write(proc, cgroup="4:memory:/\n" * 2000 + OURS)
    found = Lookup(proc, 100).look(17)

    assert found is not None
    assert Owner(UID, ID) == found.owner


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """
    A lookup that has met more processes than a node can hold forgets them all and goes on.
    """
    write(tmp_path)
    lookup = Lookup(tmp_path, 100, most_remembered=0)
    lookup.occupants([17])
    (tmp_path / "17" / "cgroup").unlink()

    assert {} == lookup.occupants([17])


def test_true_proc() -> None:
    """
    Under the true /proc a process started in the past and keeps its start.
    """
    lookup = Lookup()
    found = lookup.look(os.getpid())

    assert found is not None
    assert found.started_by <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert found == lookup.look(os.getpid())
