"""
The agent as a process that is killed and started again at will, and the child that measures for it.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from tests.support.agent.process import AgentProcess, Line
from tests.support.observing import MEASURING, children_naming, eventually, memory_of

PATIENCE_SECONDS = 30.0


class Agent:
    """One agent after another, for as long as the block lasts; `make` starts one."""

    def __init__(self, make: Callable[[], AgentProcess]) -> None:
        self._make = make
        self._run: AgentProcess | None = None
        self._earlier: list[Line] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._run is not None:
            self._run.__exit__(None, None, None)

    @property
    def lines(self) -> list[Line]:
        """The log of all runs."""
        return self._earlier + ([] if self._run is None else self._run.lines)

    def start(self) -> None:
        """Start it; it is not waited for."""
        self._run = self._make()

    def kill(self) -> None:
        """End it without a word; its child ends by itself."""
        if self._run is not None:
            self._run.kill()
            self._earlier += self._run.lines
            self._run = None

    def children(self) -> list[int]:
        """Find the processes that measure for the agent."""
        return [] if self._run is None else children_naming(self._run.process.pid, MEASURING)

    def signal_child(self, number: signal.Signals) -> list[int]:
        """Send the measuring child a signal, and return which it was."""
        children = self.children()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return children

    def memory(self) -> int:
        """Add up what the agent and its child hold, in bytes; nothing while it does not run."""
        if self._run is None:
            return 0
        return sum(memory_of(pid) for pid in (self._run.process.pid, *self.children()))

    def wait_until_gone(self, pids: list[int]) -> None:
        """Wait until none of these processes is left and the agent has a child again."""
        back = eventually(
            lambda: not set(pids) & set(self.children()) and bool(self.children()),
            PATIENCE_SECONDS,
        )

        assert back, f"no new child: {self.lines[-20:]}"
