"""
`top --watch`: in place on a terminal, where keys sort and filter; one table after the other
everywhere else.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from gpufence.errors import GpufenceError
from gpufence.text import printable
from kube import ForbiddenError
from kube.repeating import Repeating
from kubectl_gpufence.live import LiveLooks, objects_in_view
from kubectl_gpufence.output import advice
from kubectl_gpufence.verbs.top.screen import (
    ScreenSize,
    Shown,
    WatchView,
    keys_of,
    page_of,
    pressed,
    screen,
    titles_of,
)
from kubectl_gpufence.view import width_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Self, TextIO

    from kubectl_gpufence.cluster_view import ClusterAnswers, SeenObjects
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader


_LEAST_SECONDS: Final = 0.2


def watch(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Look until somebody quits.

    Raises:
        KubeError: the first look fails; later ones are only noted.
    """
    live = LiveLooks(reader, lambda asker: _objects(asker, call))
    looks = Looker(live, max(call.interval, _LEAST_SECONDS))
    if output.keys is None:
        raise AssertionError("watch() is for terminals")
    view = WatchView(what=call.what, wide=call.output == "wide")
    with KeyTerminal(output.keys, output.out) as terminal:
        looks.start(terminal.wake)
        try:
            _show(view, call.namespace, looks, terminal, output)
        finally:
            looks.stop()
    return 0


def _objects(reader: ClusterReader, call: argparse.Namespace) -> SeenObjects:
    """
    Read pods and nodes together, since a key leads from one to the other. Who asks for nodes or
    cards need not be allowed to list pods.
    """
    if call.what == "pods":
        return objects_in_view(reader, call.namespace, call.node)
    objects = reader.objects_of_nodes(call.node)
    try:
        pods, wrong = reader.pods(call.namespace, call.node, objects.nodes)
    except ForbiddenError:
        return objects
    return objects._replace(pods=tuple(pods), notes=(*objects.notes, *wrong))


def _show(
    view: WatchView, namespace: str, looks: Looker, terminal: KeyTerminal, output: Output
) -> None:
    """Draw after each key and each look, until a key ends it."""
    shown = Shown(looks.cluster, namespace, looks.at)
    while True:
        if not view.paused:
            shown = Shown(looks.cluster, namespace, looks.at, looks.trouble)
        size = ScreenSize(*terminal.size)
        lines, view = screen(view, shown, size, output.display)
        terminal.draw(lines)
        for key in keys_of(terminal.read(None)):
            if key == "ctrl-l":
                terminal.redraw()
            elif key in ("r", "f5") and not view.typing:
                looks.hurry()
            else:
                changed = pressed(view, key, titles_of(view.what, shown), page_of(size))
                if changed is None:
                    return
                view = changed


class Looker:
    """
    Takes looks on a thread of its own, so that keys never wait for an agent; the first one is taken
    at once by whoever makes it.
    """

    def __init__(self, live: LiveLooks, interval: float) -> None:
        self._live = live
        self._interval = interval
        self._repeating = Repeating("looks", self._turn, jitter=0.0)
        self._told: Callable[[], None] = lambda: None
        self.trouble = ""
        self.cluster: ClusterAnswers = live.look()
        self.at = _clock()

    def start(self, told: Callable[[], None]) -> None:
        """Go on looking; `told` is called after each look."""
        self._told = told
        self._repeating.start(self._interval)

    def hurry(self) -> None:
        self._repeating.wake()

    def stop(self) -> None:
        """End after the look that is being taken, and do not wait for that."""
        self._repeating.end()
        self._live.stop()

    def _turn(self) -> float:
        try:
            self.cluster, self.at, self.trouble = self._live.look(), _clock(), ""
        except GpufenceError as error:
            self.trouble = f"this is an old look: {advice(error)}"
        except Exception as error:  # noqa: BLE001 - one bad look must not be the last
            self.trouble = f"this is an old look: {printable(repr(error), 200)}"
        if not self._repeating.stopped:
            self._told()
        return self._interval


def _clock() -> str:
    return time.strftime("%H:%M:%S")


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
