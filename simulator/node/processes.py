"""
Processes of containers: started, watched, ended, and shown in a folder shaped like /proc.

Each stands under a warden of its own, which kills it should this program die in whatever way. The
warden leads a session, and whatever belongs to the container is what belongs to that session.
"""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.controlplane.processes import GuardedProcess, Surroundings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

ROOT = Path(__file__).parents[2]
"""Where `python -m simulator` is found, installed or not."""

_LONGEST_MESSAGE = 1024
_SIGNAL_EXIT = 128
_SYSTEM = ("self", "thread-self", "stat", "uptime", "meminfo", "loadavg", "version", "sys")
_OF_PROCESS = ("stat", "status", "statm", "comm", "cmdline", "ns", "task")


class ContainerProcess(GuardedProcess):
    """
    The process of one container, with all that it starts; its output goes to a log of its own.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], log: Path) -> None:
        super().__init__(command, Surroundings(ROOT, variables), log=log, grace_seconds=0)

    @property
    def session(self) -> int:
        """The session of everything that belongs to the container, led by the warden."""
        return self._warden.pid

    def poll(self) -> int | None:
        """Return the exit code as a container runtime reports it, None while the process lives."""
        status = self._warden.poll()
        return _SIGNAL_EXIT - status if status is not None and status < 0 else status

    def terminate(self) -> None:
        """Send SIGTERM to the container's first process, as runtimes do, and to no other."""
        for pid in members({self.session}).get(self.session, ()):
            with suppress(ProcessLookupError):
                if os.getpgid(pid) == pid:
                    os.kill(pid, signal.SIGTERM)
                    return
        self.tell_to_stop()  # there is no first process yet

    def kill(self) -> None:
        self.tell_to_stop()

    def last_line(self) -> str:
        lines = [line.strip() for line in self.log_tail().split("\n")]
        return next((line for line in reversed(lines) if line), "")[:_LONGEST_MESSAGE]


def members(sessions: Collection[int]) -> dict[int, list[int]]:
    """Return the processes of each session, its leader left out, in one pass over /proc."""
    by_session: dict[int, list[int]] = {}
    if not sessions:
        return by_session
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            pid = int(entry.name)
            with suppress(ProcessLookupError):
                session = os.getsid(pid)
                if session in sessions and session != pid:
                    by_session.setdefault(session, []).append(pid)
    return by_session


class ProcRoot:
    """
    A folder shaped like /proc in which the processes of pods have the cgroups of a real node.

    All else about a process, its start time above all, is a link into the true /proc and so stays
    true. It appears within a tick of its start; once it is gone its links lead nowhere, and within
    a tick its folder goes, too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shown: dict[int, str] = {}
        folder.mkdir(parents=True)
        for name in _SYSTEM:
            (folder / name).symlink_to(f"/proc/{name}")

    def show(self, lines: Mapping[int, str]) -> None:
        for pid in [pid for pid, line in self._shown.items() if lines.get(pid) != line]:
            del self._shown[pid]
            shutil.rmtree(self.folder / str(pid), ignore_errors=True)
        for pid, line in lines.items():
            if pid not in self._shown:
                self._add(pid, line)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _add(self, pid: int, line: str) -> None:
        # Moved into place as a whole, so that nobody reads a process without its cgroup.
        aside = self.folder / f".{pid}"
        aside.mkdir()
        (aside / "cgroup").write_text(line)
        for name in _OF_PROCESS:
            (aside / name).symlink_to(f"/proc/{pid}/{name}")
        aside.rename(self.folder / str(pid))
        self._shown[pid] = line
