"""
The page on this machine's own address, a thread for each request, few at a time.

What the browser gets forbids it to run, load or frame anything but the page itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpufence.errors import GpufenceError
from kubectl_gpufence.verbs.dashboard.access import PageAddress, PageRequest, Refused, judge

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from kubectl_gpufence.verbs.dashboard.access import AskedStory

LOOPBACK: Final = "127.0.0.1"

_MOST_AT_ONCE: Final = 16
_STAY_SECONDS: Final = 10.0
_HTML: Final = "text/html; charset=utf-8"
_JSON: Final = "application/json"
_PLAIN: Final = "text/plain; charset=utf-8"
_ALWAYS: Final = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PortError(GpufenceError):
    """Raised where a port is taken that somebody has named."""


class PageText(NamedTuple):
    """
    The page as it is sent, and what it may do: nothing but run its own script and ask where it came
    from.
    """

    body: bytes
    policy: str


def read_page() -> PageText:
    """Read the page from the package, and take the sums of its script and its style."""
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    policy = (
        "default-src 'none'",
        f"script-src {_sums(text, 'script')}",
        f"style-src {_sums(text, 'style')}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    return PageText(text.encode(), "; ".join(policy))


class PageServer(ThreadingHTTPServer):
    """Serves until closed; who comes while too many are there is turned away."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = False

    def __init__(
        self,
        port: int,
        token: str,
        state: Callable[[int], bytes],
        tell: Callable[[AskedStory], str],
    ) -> None:
        try:
            super().__init__((LOOPBACK, port), _PageHandler)
        except OSError as error:
            raise PortError(
                f"--port: {LOOPBACK}:{port} cannot be listened on: {error.strerror}; name another "
                "one, or none at all for one that is free"
            ) from error
        self.door = PageAddress(token, self.server_address[1])
        self.page = read_page()
        self.state = state
        self.tell = tell
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.1,), name="page", daemon=True
        )

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.door.port}/{self.door.token}/"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: object) -> None:  # noqa: ANN401 - a socket; to the base class it may be a datagram, too
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: object) -> None:  # noqa: ANN401 (as above)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Let a browser go away in the middle of an answer; a bug of ours is shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # a socket


class _PageHandler(BaseHTTPRequestHandler):
    """One request and its reply."""

    server: PageServer
    connection: socket.socket
    timeout = _STAY_SECONDS
    default_request_version = "HTTP/1.0"  # or what is no request would be answered without a head

    def do_GET(self) -> None:
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        answer = judge(PageRequest(self.command, self.path, headers), self.server.door)
        if isinstance(answer, Refused):
            self._reply(answer.status, f"{answer.text}\n".encode(), _PLAIN)
        elif answer.page:
            page = self.server.page
            self._reply(HTTPStatus.OK, page.body, _HTML, page.policy)
        elif answer.story:
            told = self.server.tell(answer.story)
            self._reply(HTTPStatus.OK, told.encode(errors="replace"), _PLAIN)
        else:
            self._reply(HTTPStatus.OK, self.server.state(answer.after), _JSON)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - the base class calls these

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request without repeating any of it."""
        del message, explain
        status = HTTPStatus(code)
        self._reply(status, f"{status.phrase}\n".encode(), _PLAIN)

    def log_message(self, *_: object) -> None:
        """Leave requests, and with them the token, out of the terminal."""

    def _reply(
        self, status: HTTPStatus, body: bytes, content_type: str, policy: str = "default-src 'none'"
    ) -> None:
        self.send_response_only(status)
        headers = {
            "Content-Type": content_type,
            "Content-Length": f"{len(body)}",
            "Content-Security-Policy": policy,
        }
        for name, value in {**headers, **_ALWAYS}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _sums(text: str, tag: str) -> str:
    """Return the sums by which a browser knows a page's own blocks."""
    blocks = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    sums = (base64.b64encode(hashlib.sha256(block.encode()).digest()) for block in blocks)
    return " ".join(f"'sha256-{item.decode()}'" for item in sums)
