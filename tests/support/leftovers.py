"""Threads and child processes of this process, and which of them a test has left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.support.observing import eventually

_ANSWERING: Final = "process_request_thread"
"""
The name of a thread by which socketserver serves one connection: as long as its client keeps that,
which may be a server of a wider scope.
"""
_GUARDED: Final = "controlplane/warden.py"
"""
What the command of a program says that ends with us, or with what it belongs to: a control plane or
a node, whose scope is wider than that of the test that restarts an API server or makes a pod.
"""
_TASKS: Final = Path("/proc/self/task")


@dataclass(frozen=True)
class Running:
    """What runs at one moment beside the test's own thread."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]

    @classmethod
    def now(cls) -> Self:
        threads = (each for each in threading.enumerate() if _ANSWERING not in each.name)
        return cls(frozenset(threads), _children())

    def left(self) -> list[str]:
        """Name what runs now and did not run then."""
        now = Running.now()
        return [
            *(f"thread {thread.name}" for thread in now.threads - self.threads),
            *(f"process {pid}: {command[:200]}" for pid, command in self._new(now)),
        ]

    def left_for_good(self) -> list[str]:
        """Name what does not end by itself within a minute, which a busy machine may take."""
        eventually(lambda: not self.left())
        return self.left()

    def _new(self, now: Running) -> Iterator[tuple[int, str]]:
        for pid in now.children - self.children:
            command = _command(pid)
            if _GUARDED not in command:
                yield pid, command


def _children() -> frozenset[int]:
    found: set[int] = set()
    for task in _TASKS.iterdir():
        with suppress(OSError):  # the thread has ended
            found.update(map(int, (task / "children").read_bytes().split()))
    return frozenset(found)


def _command(pid: int) -> str:
    with suppress(OSError):
        said = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        if said:
            return said
    return "has ended, and nobody has waited for it"
