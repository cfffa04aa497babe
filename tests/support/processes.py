"""Our programs as real processes: started as a user would, watched through their log."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

PATIENCE_SECONDS = 60.0
LOOPBACK = "127.0.0.1"

Line = dict[str, Any]


class ServingProcess:
    """
    Runs `python -m` with a command until it is told to end, and reads its log as it comes.

    As a context manager it waits until the log says that the program serves, and where.
    """

    serving: Line

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self._lines: list[Line] = []
        self._changed = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env={"PATH": os.environ["PATH"], **inherited(), **environment},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            self.serving = self.wait_for("serving")
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_SECONDS)
        finally:
            self.kill()

    @property
    def lines(self) -> list[Line]:
        with self._changed:
            return list(self._lines)

    def port_of(self, field: str) -> int:
        """Return the port that the program found, by the field that tells the address."""
        return int(str(self.serving[field]).rpartition(":")[2])

    def kill(self) -> None:
        """End without a word, as an empty machine's killer would."""
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_SECONDS)
        if self.process.stderr is not None:
            self.process.stderr.close()

    def wait_for(self, message: str, after: int = 0) -> Line:
        """Wait for a line of the log whose message begins so."""
        return self.wait_for_line(lambda line: str(line["message"]).startswith(message), after)

    def wait_for_line(self, wanted: Callable[[Line], bool], after: int = 0) -> Line:
        """Wait for a line of the log, passing over the first few."""

        def found() -> Line | None:
            return next((line for line in self._lines[after:] if wanted(line)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() or self._ended, PATIENCE_SECONDS)
            line = found()
        assert line is not None, f"no such line among {self._lines}"
        return line

    def _read(self) -> None:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            try:
                line = json.loads(text)
            except ValueError:
                line = {"message": text}
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def inherited() -> Mapping[str, str]:
    # Coverage of child processes travels by these.
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("COVERAGE_") or name == "PYTHONPATH"
    }
