"""A workload as a test runs it: a real process, read line by line."""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

SECONDS = 120.0


class Program:
    """One `python -m simulator workload`; killed at the end of the block if it still runs."""

    def __init__(
        self, state: Path, *arguments: str, variables: Mapping[str, str] | None = None
    ) -> None:
        self.lines: list[str] = []
        self._complaint = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "simulator", "workload", *arguments],
            env={**os.environ, **(variables or {}), "GPUFENCE_SIMULATOR_STATE": str(state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._arriving: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self.end()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def until(self, words: str) -> str:
        """Read until a line has the words."""
        while True:
            try:
                line = self._arriving.get(timeout=SECONDS)
            except queue.Empty:
                raise AssertionError(f"no line with {words!r} in {self.lines}") from None
            self.lines.append(line)
            if words in line:
                return line

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was written to stderr."""
        code = self._process.wait(SECONDS)
        self._reader.join(SECONDS)
        while not self._arriving.empty():
            self.lines.append(self._arriving.get())
        return code, self._complaint

    def _read(self) -> None:
        """Pass the lines on as they come; a pipe that nobody reads would stop the process."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for line in self._process.stdout:
            self._arriving.put(line.rstrip())
        self._complaint = self._process.stderr.read()
