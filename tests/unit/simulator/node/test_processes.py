"""
A folder shaped like /proc.
"""

import os
from pathlib import Path

from simulator.node.processes import ProcRoot

LINE = "0::/kubepods.slice/x.scope\n"


def start_time(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[19]


def test_a_process_has_its_line_and_its_true_start(tmp_path: Path) -> None:
    """
    The cgroup is the one given, everything else comes from the true /proc.
    """
    root = ProcRoot(tmp_path / "proc")
    root.show({os.getpid(): LINE})
    folder = root.folder / str(os.getpid())

    assert LINE == (folder / "cgroup").read_text()
    assert start_time(Path("/proc/self/stat")) == start_time(folder / "stat")
    assert Path("/proc/self").resolve() == (root.folder / "self").resolve()


def test_only_what_is_named_is_shown(tmp_path: Path) -> None:
    """
    A process that is no longer named disappears; a PID in other hands has the new line.
    """
    root = ProcRoot(tmp_path / "proc")
    root.show({1: LINE, 2: LINE})
    root.show({2: "0::/other\n"})

    assert ["2"] == [path.name for path in root.folder.iterdir() if path.name.isdecimal()]
    assert "0::/other\n" == (root.folder / "2" / "cgroup").read_text()


def test_closing_leaves_nothing(tmp_path: Path) -> None:
    """
    Nothing of ours stays behind.
    """
    root = ProcRoot(tmp_path / "proc")
    root.show({1: LINE})
    root.close()

    assert [] == list(tmp_path.iterdir())
