"""
Processes of containers: started, watched, ended, and found again among all processes.

Between us and each container's process stands the control plane's warden, which kills it should
this program die in whatever way. The warden leads a session, and whatever belongs to the container
is what belongs to that session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

WARDEN = Path(__file__).parents[1] / "controlplane" / "warden.py"
ROOT = Path(__file__).parents[2]
"""Where `python -m simulator` is found, installed or not."""

AT_ONCE = "0"
_TAIL_BYTES = 4096
_LONGEST_MESSAGE = 1024
_SIGNAL_EXIT = 128


class Process:
    """
    The process of one container, with all that it starts; its output goes to a log of its own.
    """

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], log: Path, leftovers: str = ""
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._warden = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(WARDEN)),
                    *(str(os.getpid()), AT_ONCE, leftovers),
                    *command,
                ],
                cwd=ROOT,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def session(self) -> int:
        """
        The session of everything that belongs to the container, led by the warden.
        """
        return self._warden.pid

    def poll(self) -> int | None:
        """
        Return the exit code as a container runtime reports it, None while the process lives.
        """
        status = self._warden.poll()
        return _SIGNAL_EXIT - status if status is not None and status < 0 else status

    def terminate(self) -> None:
        """
        Send SIGTERM to the container's first process, as runtimes do, and to no other.
        """
        for pid in members({self.session}).get(self.session, ()):
            with suppress(ProcessLookupError):
                if os.getpgid(pid) == pid:
                    os.kill(pid, signal.SIGTERM)
                    return
        self._warden.terminate()  # there is no first process yet

    def kill(self) -> None:
        """
        Kill everything at once.
        """
        self._warden.terminate()

    def wait(self, seconds: float) -> None:
        """
        Wait for the end; a warden that does not answer is killed, and the kernel kills the rest.
        """
        try:
            self._warden.wait(seconds)
        except subprocess.TimeoutExpired:
            self._warden.kill()
            self._warden.wait()

    def last_words(self) -> str:
        """
        Return the last line of the log.
        """
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[
            :_LONGEST_MESSAGE
        ]


def members(sessions: Collection[int]) -> dict[int, list[int]]:
    """
    Find the processes of each session, its leader left out, in one pass over /proc.
    """
    found: dict[int, list[int]] = {}
    if not sessions:
        return found
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            pid = int(entry.name)
            with suppress(ProcessLookupError):
                session = os.getsid(pid)
                if session in sessions and session != pid:
                    found.setdefault(session, []).append(pid)
    return found
