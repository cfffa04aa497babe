"""A real terminal whose screen a test sees: as much of ECMA-48 as our programs write."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

PATIENCE_SECONDS = 30.0
_CONTROL = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|([\r\n\b])|([^\x1b])")


class PtyScreen:
    """Runs a program as the leader of a session on a new terminal; use it as a context manager."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        size: tuple[int, int] = (100, 24),
        folder: Path | None = None,
    ) -> None:
        self._master, self.slave = pty.openpty()
        self.columns, self.lines = size
        self._set_size()
        self.before = termios.tcgetattr(self.slave)
        self.raw = ""
        self.modes: set[str] = set()
        self._screen = self._blank()
        self._behind: tuple[list[list[str]], int, int] | None = None
        self._row = self._column = 0
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--", *command],
            env={**environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            cwd=folder,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        self._reader.join(PATIENCE_SECONDS)
        os.close(self._master)

    def text(self) -> list[str]:
        """Return what stands on the screen now, line by line."""
        with self._changed:
            return ["".join(line).rstrip() for line in self._screen]

    def press(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Make the window larger or smaller, of which the program is told by a signal."""
        with self._changed:
            self.columns, self.lines = columns, lines
            self._screen = self._blank()
        self._set_size()

    def wait(self, happened: Callable[[list[str]], Any], what: str = "") -> list[str]:
        """Wait until the screen is as somebody wants it, and return it."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            text = self.text()
            if happened(text):
                return text
            if time.monotonic() > until:
                shown = "\n".join(text)
                raise AssertionError(
                    f"waited in vain{what and ' until '}{what}; there is:\n{shown}"
                )
            with self._changed:
                self._changed.wait(0.1)

    def wait_for(self, words: str) -> list[str]:
        return self.wait(lambda text: any(words in line for line in text), f"{words!r} is shown")

    def end(self) -> int:
        """Wait until the program has ended, and until all that it wrote is read."""
        code = self.process.wait(PATIENCE_SECONDS)
        time.sleep(0.1)
        return code

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def attributes(self) -> list[Any]:
        """Return how the terminal treats keys."""
        return termios.tcgetattr(self.slave)

    def _set_size(self) -> None:
        packed = struct.pack("HHHH", self.lines, self.columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, packed)

    def _blank(self) -> list[list[str]]:
        return [[" "] * self.columns for _ in range(self.lines)]

    def _read(self) -> None:
        rest = b""
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            if not data:
                return
            rest += data
            # What is cut in the middle of a character or a sequence waits for its end.
            cut = len(rest) if b"\x1b" not in rest[-16:] else rest.rindex(b"\x1b")
            text, rest = rest[:cut], rest[cut:]
            whole = re.fullmatch(rb"\x1b\[\??[0-9;]*[A-Za-z].*", rest, re.DOTALL)
            if whole:
                text, rest = text + rest, b""
            with self._changed:
                self._take(text.decode("utf-8", "replace"))
                self._changed.notify_all()

    def _take(self, text: str) -> None:
        self.raw += text
        for private, numbers, letter, control, char in _CONTROL.findall(text):
            if private:
                self._switch(numbers, on=letter == "h")
            elif letter == "H":
                row, _, column = numbers.partition(";")
                self._row, self._column = int(row or 1) - 1, int(column or 1) - 1
            elif letter and letter in "JK":
                self._erase(letter, numbers)
            elif control == "\n":
                self._row += 1
                while self._row >= self.lines:
                    self._screen = [*self._screen[1:], [" "] * self.columns]
                    self._row -= 1
            elif control:
                self._column = 0 if control == "\r" else max(self._column - 1, 0)
            elif char:
                self._put(char)

    def _switch(self, mode: str, *, on: bool) -> None:
        """Switch a mode; 1049 is another screen, behind which that of the shell waits."""
        (self.modes.add if on else self.modes.discard)(mode)
        if mode == "1049" and on:
            self._behind = self._screen, self._row, self._column
            self._screen = self._blank()
        elif mode == "1049" and self._behind:
            self._screen, self._row, self._column = self._behind

    def _erase(self, letter: str, numbers: str) -> None:
        if letter == "J" and numbers == "2":
            self._screen = self._blank()
            return
        rows = range(self._row, self.lines if letter == "J" else self._row + 1)
        for row in rows:
            # Behind its last column the cursor is still on it, as in a real terminal.
            start = min(self._column, self.columns - 1) if row == self._row else 0
            if row < self.lines:
                self._screen[row][start:] = [" "] * (self.columns - start)

    def _put(self, char: str) -> None:
        """Write a character; one beyond the edge is a mistake that tests shall see."""
        if self._row < self.lines and self._column < self.columns:
            self._screen[self._row][self._column] = char
        self._column += 1
