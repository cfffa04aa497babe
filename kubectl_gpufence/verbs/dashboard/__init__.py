"""`dashboard`: what `top` shows, live, as a page that only this machine's user can open."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import tempfile
import threading
import webbrowser
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kubectl_gpufence.arguments import add_interval, add_scope
from kubectl_gpufence.live import CachedAnswer, LiveLooks, objects_in_view
from kubectl_gpufence.verbs.dashboard.poller import PagePoller, read_events
from kubectl_gpufence.verbs.dashboard.server import PageServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence dashboard                  a page of the current namespace, live
  kubectl gpufence dashboard -A --no-open     of all namespaces; you open the address yourself
  kubectl gpufence dashboard --port 8765      where a tunnel leads: ssh -L 8765:127.0.0.1:8765 ...

The page is served on this machine's loopback address alone, to whoever knows the whole address with
its token, and shows what you may see. It stays until Ctrl-C.
"""

_TOKEN_BYTES = 32
_EVENT_SECONDS = 10.0
_LEAST_SECONDS = 0.5
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)
    parser.add_argument(
        "--port", type=_port, default=0, metavar="PORT", help="on 127.0.0.1 (one that is free)"
    )
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="start a browser (by default where there is a screen)",
    )
    add_interval(parser)


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Serve the page until Ctrl-C.

    Raises:
        KubeError: nothing at all may be seen.
        PortError: the port is taken.
    """
    live = LiveLooks(reader, lambda asker: objects_in_view(asker, call.namespace))
    events = CachedAnswer(lambda: read_events(live.reader, call.namespace), _EVENT_SECONDS)
    with _interruptible():
        try:
            interval = max(call.interval, _LEAST_SECONDS)
            return _serve(call, PagePoller(live, call.namespace, interval, events), output)
        except KeyboardInterrupt:
            return 0


def _serve(call: argparse.Namespace, poller: PagePoller, output: Output) -> int:
    server = PageServer(call.port, secrets.token_urlsafe(_TOKEN_BYTES), poller.state)
    poller.start()
    server.start()
    try:
        where = f"namespace {call.namespace}" if call.namespace else "all namespaces"
        output.lines([server.address])
        output.notes([f"{where}, live, for whoever knows this address; Ctrl-C ends it"])
        with tempfile.TemporaryDirectory(prefix="gpufence-dashboard-") as folder:
            if _is_wanted(call, os.environ, is_terminal=output.out.isatty()) and not _opened(
                server.address, Path(folder)
            ):
                output.notes(["no browser could be started: open the address yourself"])
            threading.Event().wait()
    finally:
        poller.stop()
        server.close()
    return 0


@contextmanager
def _interruptible() -> Iterator[None]:
    """Have every polite end be one as by Ctrl-C."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_wanted(call: argparse.Namespace, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """
    Return whether a browser is to be started: by default where somebody sits in front of a screen.
    """
    if call.open is not None:
        return bool(call.open)
    return is_terminal and (
        sys.platform == "darwin" or any(environ.get(name) for name in _DISPLAYS)
    )


def _opened(address: str, folder: Path) -> bool:
    """
    Start a browser. It is led by a file that only this user may read: what a program is started
    with, such as an address with its token, everybody on the machine can see.
    """
    file = folder / "open.html"
    file.touch(mode=0o600)
    text = f'<meta http-equiv="refresh" content="0; url={escape(address)}">\n'
    file.write_text(f'<!DOCTYPE html><meta name="referrer" content="no-referrer">{text}')
    with suppress(webbrowser.Error):
        return webbrowser.open(file.as_uri())
    return False


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f'"{text}" is no port; write one from 1 to 65535')
