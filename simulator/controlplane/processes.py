"""Start programs that end with us, wait until they are ready, and stop them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.controlplane import warden
from simulator.controlplane.errors import StartError
from simulator.controlplane.programs import LOOPBACK

POLL_SECONDS = 0.02
GRACE_SECONDS = 5.0
_END_SECONDS = 10.0
_TAIL_BYTES = 4096


@dataclass(frozen=True)
class Surroundings:
    """
    What programs that belong together have in common.

    `leftovers` is the folder to remove should we die without stopping; empty, nothing is removed.
    """

    folder: Path
    environment: Mapping[str, str]
    leftovers: str = ""


class GuardedProcess:
    """
    One running program, its output in a log of its own.

    It ends with this process, even if that is killed; see `warden`.
    """

    def __init__(
        self,
        command: Sequence[str],
        surroundings: Surroundings,
        *,
        log: Path | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self.name = Path(command[0]).name
        self.log = log or surroundings.folder / f"{self.name}.log"
        with self.log.open("ab") as output:
            self._warden = subprocess.Popen(
                guarded(command, surroundings.leftovers, grace_seconds),
                cwd=surroundings.folder,
                env=dict(surroundings.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self._warden.poll() is None

    def tell_to_stop(self) -> None:
        self._warden.terminate()

    def wait_for_end(self, seconds: float = _END_SECONDS) -> None:
        """Wait for the end that was asked for; should even the warden not answer, kill it."""
        wait_or_kill(self._warden, seconds)

    def end(self) -> None:
        self.tell_to_stop()
        self.wait_for_end()

    def log_tail(self) -> str:
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return log.read().decode(errors="replace")


def guarded(command: Sequence[str], leftovers: str, grace_seconds: float) -> list[str]:
    python = (sys.executable, "-I", "-S", str(warden.SCRIPT))
    return [*python, str(os.getpid()), str(grace_seconds), leftovers, *command]


def wait_or_kill(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until(
    ready: Callable[[], bool], processes: Sequence[GuardedProcess], seconds: float, what: str
) -> None:
    """Wait for a condition as long as the programs run on which it depends."""
    deadline = time.monotonic() + seconds
    while not ready():
        for process in processes:
            if not process.is_running:
                raise StartError(
                    f"{process.name} ended before {what}; its last words:\n{process.log_tail()}"
                )
        if time.monotonic() > deadline:
            last = processes[-1]
            raise StartError(
                f"{what}: not within {seconds:.0f} s; the last words of {last.name}:\n"
                f"{last.log_tail()}"
            )
        time.sleep(POLL_SECONDS)


class HeldPort:
    """
    A free loopback port, ours from now on, for a program that is about to be started, or restarted.

    Looking for a free port and letting it go again loses it, now and then, to somebody else. Here
    it stays bound, but not listening, by a socket of ours with SO_REUSEPORT; a program of the same
    user that sets it too (`--permit-port-sharing` of the Kubernetes programs) gets the port next to
    us, and all its connections, because only a listening socket has any. While the program is down,
    clients are refused and the port is still ours.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind((LOOPBACK, 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        self._socket.close()
