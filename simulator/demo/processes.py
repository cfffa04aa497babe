"""gpufence's programs as processes of their own, watched through their logs."""

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

_START_SECONDS = 60.0
_END_SECONDS = 10.0


class DemoProgram:
    """
    Runs `python -m <name>` until the block is left; entering it waits for its first address.

    Both programs write JSON lines and say where they listen in one whose message is `serving`.
    """

    def __init__(self, name: str, environment: dict[str, str], folder: Path) -> None:
        self._name = name
        self._log = folder / f"{name}.log"
        self._serving = threading.Event()
        self.address = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", name],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name=f"{name} log", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        if not self._serving.wait(_START_SECONDS) or not self.address:
            self.__exit__()
            text = self._log.read_text(encoding="utf-8", errors="replace").strip()
            raise StoryError(f"the {self._name} did not start; it said: {text or 'nothing'}")
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
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    where = entry.get("listen") or entry.get("statusListen") or ""
    return str(where) if entry.get("message") == "serving" else ""
