"""
A folder shaped like /proc.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator.node.errors import SetupError
from simulator.node.procroot import ProcRoot

LINE = "0::/kubepods.slice/x.scope\n"


def processes(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name.strip(".").isdecimal())


def test_a_process_has_its_line_and_its_true_start(tmp_path: Path) -> None:
    """
    The cgroup is the one given, everything else comes from the true /proc.
    """
    ProcRoot(tmp_path / "proc").show({os.getpid(): LINE})
    folder = tmp_path / "proc" / str(os.getpid())
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]

    assert LINE == (folder / "cgroup").read_text()
    assert start == (folder / "stat").read_text().rpartition(")")[2].split()[19]


def test_the_reader_finds_itself(tmp_path: Path) -> None:
    """
    `self` is whoever reads, as in the true /proc.
    """
    ProcRoot(tmp_path)

    assert Path("/proc/self").resolve() == (tmp_path / "self").resolve()


def test_what_is_gone_is_not_shown(tmp_path: Path) -> None:
    """
    A process that is no longer named disappears.
    """
    root = ProcRoot(tmp_path)
    root.show({1: LINE, 2: LINE})
    root.show({2: LINE})

    assert ["2"] == processes(tmp_path)


def test_a_number_in_other_hands_has_the_new_line(tmp_path: Path) -> None:
    """
    A PID that now belongs to another container shows that container's line.
    """
    root = ProcRoot(tmp_path)
    root.show({1: LINE})
    root.show({1: "0::/other\n"})

    assert "0::/other\n" == (tmp_path / "1" / "cgroup").read_text()


def test_closing_leaves_an_empty_folder(tmp_path: Path) -> None:
    """
    Nothing of ours stays behind.
    """
    root = ProcRoot(tmp_path)
    root.show({1: LINE})
    root.close()

    assert [] == list(tmp_path.iterdir())


def test_what_a_killed_owner_left_is_cleared(tmp_path: Path) -> None:
    """
    A folder of an owner that was killed can be used again, without its processes.
    """
    ProcRoot(tmp_path).show({1: LINE})
    ProcRoot(tmp_path)

    assert [] == processes(tmp_path)


def test_somebody_elses_folder_is_not_touched(tmp_path: Path) -> None:
    """
    A folder with anything in it that is not ours is refused.
    """
    (tmp_path / "12").mkdir()
    with pytest.raises(SetupError, match="is not empty"):
        ProcRoot(tmp_path)

    assert (tmp_path / "12").is_dir()


def test_what_others_put_there_later_stays(tmp_path: Path) -> None:
    """
    Closing removes no folder that is none of a process.
    """
    root = ProcRoot(tmp_path)
    (tmp_path / "notes").mkdir()
    root.close()

    assert ["notes"] == [entry.name for entry in tmp_path.iterdir()]
