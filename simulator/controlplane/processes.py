"""
Start programs that end with us, wait until they are ready, and stop them.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.controlplane import warden
from simulator.controlplane.errors import StartError

POLL_SECONDS = 0.02
GRACE_SECONDS = 5.0
_TAIL_BYTES = 2000


@dataclass(frozen=True)
class Surroundings:
    """
    What every program of one control plane has in common.

    `leftovers` is the folder to remove should we die without stopping; empty, nothing is removed.
    """

    folder: Path
    environment: Mapping[str, str]
    leftovers: str


class Process:
    """
    One running program, its output in a log of its own.

    It ends with this process, even if that is killed; see `warden`.
    """

    def __init__(self, command: Sequence[str], surroundings: Surroundings) -> None:
        self.name = Path(command[0]).name
        self.log = surroundings.folder / f"{self.name}.log"
        with self.log.open("ab") as log:
            self._warden = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(warden.SCRIPT)),
                    *(str(os.getpid()), str(GRACE_SECONDS), surroundings.leftovers),
                    *command,
                ],
                cwd=surroundings.folder,
                env=dict(surroundings.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        """
        Tell whether the program has not ended.
        """
        return self._warden.poll() is None

    def tell_to_stop(self) -> None:
        """
        Ask the program to end, without waiting for it.
        """
        self._warden.terminate()

    def wait_for_end(self, seconds: float = GRACE_SECONDS + 5) -> None:
        """
        Wait for the end that was asked for; should even the warden not answer, kill it.
        """
        try:
            self._warden.wait(seconds)
        except subprocess.TimeoutExpired:
            self._warden.kill()
            self._warden.wait()

    def log_tail(self) -> str:
        """
        Return the last words of the program.
        """
        content = self.log.read_bytes()
        return content[-_TAIL_BYTES:].decode(errors="replace")


def wait_until(
    ready: Callable[[], bool], processes: Sequence[Process], seconds: float, what: str
) -> None:
    """
    Wait for a condition as long as the programs run on which it depends.
    """
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
