"""
The webhook as a process of its own, watched through its log.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from simulator.demo.narrator import StoryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

_START_SECONDS = 30.0
_END_SECONDS = 10.0


class WebhookProcess:
    """
    Runs `python -m webhook` on a free port; leaving the block ends it.
    """

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._log = log
        self._serving = threading.Event()
        self.address = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "webhook"],
            env=environment
            | {"GPUFENCE_LISTEN": "127.0.0.1:0", "GPUFENCE_STATUS_LISTEN": "127.0.0.1:0"},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name="webhook log", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        if not self._serving.wait(_START_SECONDS) or not self.address:
            self.__exit__()
            raise StoryError(f"the webhook did not start; its log is {self._log}")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_END_SECONDS)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _read(self) -> None:
        with self._log.open("w", encoding="utf-8") as log:
            for line in self._lines():
                log.write(line)
                log.flush()
                if not self.address:
                    self.address = _listening(line)
                    if self.address:
                        self._serving.set()
        self._serving.set()

    def _lines(self) -> Iterator[str]:
        if self._process.stderr is not None:
            yield from self._process.stderr


def _listening(line: str) -> str:
    """
    Return where the webhook serves, once its log says so.
    """
    try:
        said = json.loads(line)
    except ValueError:
        return ""
    return str(said.get("listen", "")) if said.get("message") == "serving" else ""
