"""A child process and the two pipes to it; nothing here waits longer than it is told."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from typing import IO

    from agent.nvml.settings import SamplerSettings

_CHUNK: Final = 65536
_MOST_BYTES: Final = 16 * 2**20
_KILL_SECONDS: Final = 0.2
_EXIT_SECONDS: Final = 1.0
_END_SECONDS: Final = 2.0


class EndedError(Exception):
    """Raised when the child is gone, with the way it went."""


class Channel(Protocol):
    """What a session needs of a child; `Child` is the real one."""

    def send(self, text: str) -> None:
        """Hand lines over, without waiting for anybody to read them."""

    def receive(self, seconds: float) -> list[str]:
        """
        Return the lines that have come, waiting for the first as long as that.

        Raises:
            EndedError: none will come any more.
        """

    def kill(self) -> bool:
        """
        Kill the child, and return whether it is gone; one within the kernel may not be for long.
        """

    def gone(self) -> bool:
        """Return whether a killed child is gone by now."""

    def close(self) -> None:
        """Let the child end by itself, or kill it."""


class Child:
    """
    `python -m agent.nvml`, in a process group of its own, so that Ctrl-C reaches the parent alone.
    """

    def __init__(self, settings: SamplerSettings) -> None:
        library = [] if settings.library_path is None else [str(settings.library_path)]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "agent.nvml", *library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=settings.environment,
            process_group=0,
        )
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._outgoing = b""
        self._incoming = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, text: str) -> None:
        self._outgoing += text.encode()
        self._flush()

    def receive(self, seconds: float) -> list[str]:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if self._outgoing:
            poll.register(self._stdin, select.POLLOUT)
        poll.poll(max(seconds, 0.0) * 1000)
        if self._outgoing:
            self._flush()
        try:
            chunk = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            raise EndedError(self._ending())
        *lines, self._incoming = (self._incoming + chunk).split(b"\n")
        if len(self._incoming) > _MOST_BYTES:
            raise EndedError("it talks without end")
        return [line.decode(errors="replace") for line in lines]

    def kill(self) -> bool:
        self._process.kill()
        return self._gone(_KILL_SECONDS)

    def gone(self) -> bool:
        return self._gone(0.0)

    def close(self) -> None:
        self._stdin.close()
        if not self._gone(_END_SECONDS):
            self.kill()

    def _flush(self) -> None:
        """Write what the pipe takes; of a broken one, the reading side tells more."""
        try:
            written = os.write(self._stdin.fileno(), self._outgoing)
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._outgoing = b""
        else:
            self._outgoing = self._outgoing[written:]

    def _gone(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._stdin.close()
        self._stdout.close()
        return True

    def _ending(self) -> str:
        """Return how a child ended that has closed its end of the pipe."""
        if not self._gone(_EXIT_SECONDS):
            self._process.kill()
            return "it closed its pipe"
        code = self._process.returncode
        if code < 0:
            return f"it was ended by signal {-code} ({signal.strsignal(-code)})"
        return f"it ended with exit code {code}"
