"""
A folder shaped like /proc in which the processes of pods have the cgroups of a real node.

All else about a process, its start time above all, is a link into the true /proc and so stays true.
A process appears within a tick of its start; once it is gone its links lead nowhere, and within a
tick its folder goes, too.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from simulator.node.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MARK = ".gpufence-node"
_SYSTEM = ("self", "thread-self", "stat", "uptime", "meminfo", "loadavg", "version", "sys")
_OF_PROCESS = ("stat", "status", "statm", "comm", "cmdline", "ns", "task")


class ProcRoot:
    """
    One such folder, ours alone. What an earlier owner left in it, killed, is cleared away.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shown: dict[int, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / MARK).exists():
            raise SetupError(f"folder {folder} is not empty; name a new one for the node's /proc")
        self._clear()
        (folder / MARK).touch()
        for name in _SYSTEM:
            (folder / name).symlink_to(f"/proc/{name}")

    def show(self, lines: Mapping[int, str]) -> None:
        """
        Show exactly these processes, each with its cgroup line.
        """
        for pid in [pid for pid, line in self._shown.items() if lines.get(pid) != line]:
            self._remove(pid)
        for pid, line in lines.items():
            if pid not in self._shown:
                self._add(pid, line)

    def close(self) -> None:
        """
        Leave an empty folder, which stays if the caller named it.
        """
        self._clear()

    def _add(self, pid: int, line: str) -> None:
        # Moved into place as a whole, so that nobody reads a process without its cgroup.
        aside = self.folder / f".{pid}"
        aside.mkdir()
        (aside / "cgroup").write_text(line)
        for name in _OF_PROCESS:
            (aside / name).symlink_to(f"/proc/{pid}/{name}")
        aside.rename(self.folder / str(pid))
        self._shown[pid] = line

    def _remove(self, pid: int) -> None:
        del self._shown[pid]
        shutil.rmtree(self.folder / str(pid), ignore_errors=True)

    def _clear(self) -> None:
        self._shown.clear()
        for entry in self.folder.iterdir():
            if entry.is_symlink() or not entry.is_dir():
                entry.unlink()
            elif entry.name.lstrip(".").isdecimal():
                shutil.rmtree(entry, ignore_errors=True)
