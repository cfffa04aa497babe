"""
A terminal that somebody sits at: keys as they are pressed, and a screen of our own that is gone
again afterwards, however that ends.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import sys
import termios
import threading
import tty
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kubectl_gpufence.view import width_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Self, TextIO

# Another screen, no cursor, no wrapping; and the way back.
_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"
# Terminals that know this show what is between at once; the others leave it out.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MOST_BYTES = 4096
_LEAST = (80, 24)


class KeyTerminal:
    """
    Use it as a context manager, in the main thread. Only lines that have changed are written, so
    that nothing flickers. Signals are only noted, and obeyed where keys are waited for: there alone
    the terminal is in a state that can be left.
    """

    def __init__(self, keys: int, out: TextIO) -> None:
        self._keys = keys
        self._out = out
        self._before: list[Any] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._ended = self._stopped = False
        self._lock = threading.Lock()
        self._woken, self._wake = os.pipe()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._shown: list[str] = []
        self._size = _LEAST
        self._old_wakeup = -1

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._keys)
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        self._old_wakeup = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number, handler in (
            *((end, self._end) for end in _ENDS),
            (signal.SIGWINCH, _nothing),
            (signal.SIGTSTP, self._stop),
        ):
            self._handlers[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        with self._lock:
            os.close(self._woken)
            os.close(self._wake)
            self._wake = -1

    @property
    def size(self) -> tuple[int, int]:
        """Return columns and lines, as they are now."""
        with suppress(OSError):
            columns, lines = os.get_terminal_size(self._out.fileno())
            if columns and lines:
                return columns, lines
        return _LEAST

    def wake(self) -> None:
        """End the waiting for keys; any thread may."""
        with self._lock, suppress(OSError):  # it is full, and has been woken therefore, or gone
            os.write(self._wake, b"\0")

    def read(self, seconds: float | None) -> str:
        """
        Wait for keys or to be woken, and return what was pressed, if anything.

        Raises:
            KeyboardInterrupt: a signal asks for the end, or the terminal is gone.
        """
        if self._ended:
            raise KeyboardInterrupt
        ready, _, _ = select.select([self._keys, self._woken], [], [], seconds)
        if self._woken in ready:
            with suppress(BlockingIOError):
                os.read(self._woken, _MOST_BYTES)
        if self._stopped:
            self._pause()
        if self._ended:
            raise KeyboardInterrupt
        if self._keys not in ready:
            return ""
        try:
            data = os.read(self._keys, _MOST_BYTES)
        except OSError:
            data = b""
        if not data:
            raise KeyboardInterrupt
        return self._decoder.decode(data)

    def redraw(self) -> None:
        """Write everything anew the next time."""
        self._shown = []

    def draw(self, lines: Sequence[str]) -> None:
        """Bring the screen in line with these lines, the first at its top."""
        if self.size != self._size:
            self._size = self.size
            self.redraw()
        parts = [] if self._shown else ["\x1b[2J"]
        for place, line in enumerate(lines):
            if place >= len(self._shown) or self._shown[place] != line:
                # Behind a full line the cursor is still on its last letter, which would go.
                rest = "\x1b[K" if width_of(line) < self._size[0] else ""
                parts.append(f"\x1b[{place + 1};1H{line}\x1b[0m{rest}")
        if len(lines) < len(self._shown):
            parts.append(f"\x1b[{len(lines) + 1};1H\x1b[J")
        if parts:
            self._write("".join((_BEGIN, *parts, _END)))
        self._shown = list(lines)

    def _take(self) -> None:
        tty.setcbreak(self._keys, termios.TCSANOW)
        self._write(_ENTER)
        self.redraw()

    def _give_back(self) -> None:
        with suppress(OSError):  # the terminal may be gone
            self._write(_LEAVE)
        with suppress(termios.error):
            termios.tcsetattr(self._keys, termios.TCSANOW, self._before)

    def _pause(self) -> None:
        """Leave the terminal to its shell, as Ctrl-Z asks for, and take it again afterwards."""
        self._stopped = False
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        # Here somebody has typed `fg`.
        signal.signal(signal.SIGTSTP, self._stop)
        self._take()

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._ended = True

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._stopped = True

    def _write(self, text: str) -> None:
        encoding = self._out.encoding or sys.getdefaultencoding()
        data = text.encode(encoding, "replace")
        self._out.flush()
        while data:
            data = data[os.write(self._out.fileno(), data) :]


def _nothing(number: int, frame: FrameType | None) -> None:
    """Let a signal end the waiting, and no more."""
