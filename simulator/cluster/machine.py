"""
A machine within the machine: processes, mounts and network in namespaces of their own.

What happens in them stays in them. When their first process ends, the kernel ends all others, and
with the last process mounts, interfaces and addresses are gone. So there is one way to stop a
cluster, and it is the same after success, failure and a crash.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from simulator.cluster import forward, init
from simulator.cluster.setup import MachineError
from simulator.controlplane import warden
from simulator.controlplane.processes import guarded, wait_or_kill
from simulator.controlplane.programs import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

NAMESPACES = ("--pid", "--mount", "--net", "--ipc", "--uts")
GRACE_SECONDS = 0.1
END_SECONDS = 30.0
_POLL_SECONDS = 0.05


class IsolatedMachine:
    """
    Runs a command as the machine's first; ends with it, with `end`, or with this process.

    `folder` is removed should this process die. The command's words go where ours go.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        pid_file: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._pid_file = pid_file
        first = (sys.executable, "-I", "-S", str(init.SCRIPT), str(pid_file))
        inner = ("unshare", "--fork", "--kill-child", *NAMESPACES, *first, *command)
        self._warden = subprocess.Popen(
            guarded(inner, str(folder), GRACE_SECONDS),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self._warden.poll() is None

    @property
    def pid(self) -> int:
        """The machine's process 1, by the number it has here."""
        try:
            return int(self._pid_file.read_text())
        except FileNotFoundError:
            raise MachineError("the machine has no process yet; wait until it is ready") from None

    def wait_until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.is_running:
                raise MachineError(f"the cluster ended before {what}; see its last words above")
            if time.monotonic() > deadline:
                raise MachineError(f"{what}: not within {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def inside(self, *command: str) -> list[str]:
        return ["nsenter", "--target", str(self.pid), "--all", "--", *command]

    def connected(self, *command: str) -> list[str]:
        """Return what runs a command of the outside with the network of the inside."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *command]

    def end(self) -> None:
        """End everything that runs inside; return when it has."""
        first = self._first_process()
        self._warden.terminate()
        wait_or_kill(self._warden, END_SECONDS)
        if first is not None:
            # It counts as ended only when all others in its namespace have.
            warden.ready(first, seconds=END_SECONDS)
            os.close(first)

    def _first_process(self) -> int | None:
        with suppress(MachineError, ProcessLookupError):
            return os.pidfd_open(self.pid)
        return None


class PortForward:
    """A loopback port here, any or that one, that leads to one inside, until it is closed."""

    def __init__(self, machine: IsolatedMachine, port: int, here: int = 0) -> None:
        with socket.create_server((LOOPBACK, here)) as listening:
            self.port: int = listening.getsockname()[1]
            descriptor = listening.fileno()
            self._process = subprocess.Popen(
                machine.connected(
                    *(sys.executable, "-I", "-S", str(forward.SCRIPT)),
                    *(str(descriptor), LOOPBACK, str(port)),
                ),
                stdin=subprocess.PIPE,
                pass_fds=[descriptor],
                start_new_session=True,
            )

    def close(self) -> None:
        """Close it: whoever is connected is cut off."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
