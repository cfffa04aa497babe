"""
The plain port: a few pages for kubelet, Prometheus and the plugin, on the standard library's
server, a thread for each connection.

Anybody in the cluster may knock, so little is read, nobody stays for long, and a crowd keeps nobody
out: who comes too many ends who has been there for longest.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import re
import socket
import sys
import threading
import time
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from service.listen import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BACKLOG: Final = 128
MOST_CONNECTIONS: Final = 64
STAY_SECONDS: Final = 5.0
"""For sending a request and taking its reply, however slowly either is done."""
JSON: Final = "application/json"
PLAIN: Final = "text/plain; charset=utf-8"

_MOST_BYTES = 8192
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_CHUNK = 65536
_LEAVE_SECONDS = 1.0
_LOOK_SECONDS = 0.25
_REMEMBERED_SECONDS = 0.25
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE})
_log = logging.getLogger(__name__)

_Connected: TypeAlias = Any  # a socket; to the base class it may be a datagram, too


class StatusReply(NamedTuple):
    """What is sent back; the connection ends with it."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = PLAIN


class PageQuestion(NamedTuple):
    """What is asked of a folder of pages: the path below it, and whom the asker says he is."""

    path: str
    authorization: str


def text_reply(status: HTTPStatus, text: str) -> StatusReply:
    """Answer with one line of text."""
    return StatusReply(status, f"{text}\n".encode())


class CachedPage:
    """
    A page that costs something to make: it is made at most a few times a second, whoever asks.
    """

    def __init__(
        self, content_type: str, make: Callable[[], str], clock: Callable[[], float]
    ) -> None:
        self._content_type = content_type
        self._make = make
        self._clock = clock
        self._lock = threading.Lock()
        self._made_at: float | None = None
        self._reply = StatusReply(HTTPStatus.OK)

    def __call__(self) -> StatusReply:
        with self._lock:
            now = self._clock()
            if self._made_at is None or not 0.0 <= now - self._made_at < _REMEMBERED_SECONDS:
                body = self._make().encode()
                self._reply = StatusReply(HTTPStatus.OK, body, self._content_type)
                self._made_at = now
            return self._reply


class StatusServer(ThreadingHTTPServer):
    """
    Serves the pages on a socket that listens already, until closed. A page may have a query in its
    name; one without answers to every query. A folder, whose name ends in a slash, answers for
    every path below it.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        listener: socket.socket,
        pages: Mapping[str, Callable[[], StatusReply]],
        stay_seconds: float = STAY_SECONDS,
        folders: Mapping[str, Callable[[PageQuestion], StatusReply]] | None = None,
    ) -> None:
        super().__init__(("", 0), _Connection, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.pages = pages
        self.folders = folders or {}
        self._stay_seconds = stay_seconds
        self._deadlines: dict[_Connected, float] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_LOOK_SECONDS,), name="status", daemon=True
        )

    @property
    def address(self) -> str:
        return address_of(self.socket)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop serving at once."""
        if self._thread.ident is not None:
            self.shutdown()
        self._end(len(self._deadlines))
        self.server_close()

    def get_request(self) -> tuple[socket.socket, object]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _NO_ROOM:
                self._end(1)
                time.sleep(_LOOK_SECONDS)
            raise

    def process_request(self, request: _Connected, client_address: object) -> None:
        """Serve a connection on a thread of its own, and have the oldest make room for it."""
        with self._lock:
            self._deadlines[request] = time.monotonic() + self._stay_seconds
            too_many = len(self._deadlines) - MOST_CONNECTIONS
        if too_many > MOST_CONNECTIONS:
            self.shutdown_request(request)
            return
        self._end(too_many)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End the connections that have stayed for too long."""
        now = time.monotonic()
        with self._lock:
            late = sum(1 for deadline in self._deadlines.values() if deadline <= now)
        self._end(late)

    def shutdown_request(self, request: _Connected) -> None:
        with self._lock:
            self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: _Connected, client_address: object) -> None:
        """Log a bug of ours; a connection that broke is none."""
        del request, client_address
        level = logging.DEBUG if isinstance(sys.exception(), OSError) else logging.ERROR
        _log.log(level, "a connection ended early", exc_info=True)

    def _end(self, count: int) -> None:
        """Cut the oldest connections; their threads notice, and close them."""
        with self._lock:
            for request in list(self._deadlines)[: max(count, 0)]:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)


class _Connection(BaseHTTPRequestHandler):
    """One request and its reply; a body is of no interest."""

    server: StatusServer
    protocol_version = default_request_version = "HTTP/1.1"
    command = ""

    def handle(self) -> None:
        head = b""
        while not (whole := _END_OF_HEAD.search(head)) and len(head) < _MOST_BYTES:
            chunk = self.connection.recv(_MOST_BYTES - len(head))
            if not chunk:
                return
            head += chunk
        self.rfile = io.BytesIO(head)
        self.requestline, self.request_version = "", self.default_request_version
        if whole:
            self.handle_one_request()
        else:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        self.connection.shutdown(socket.SHUT_WR)
        # Closing while something is still to be read would cost the other side its reply.
        self.connection.settimeout(_LEAVE_SECONDS)
        with contextlib.suppress(OSError):
            while self.connection.recv(_CHUNK):
                pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        pages = self.server.pages
        page = pages.get(self.path) or pages.get(path) or self._in_folder(path)
        if page is None:
            names = {name.partition("?")[0] for name in (*pages, *self.server.folders)}
            known = ", ".join(sorted(names))
            self._reply(text_reply(HTTPStatus.NOT_FOUND, f"there are {known}"))
            return
        try:
            reply = page()
        except Exception:  # noqa: BLE001 - one page's bug must not end the others
            _log.exception("the page %s failed", path)
            reply = text_reply(
                HTTPStatus.INTERNAL_SERVER_ERROR, "a bug of ours; see the program's log"
            )
        self._reply(reply)

    def do_POST(self) -> None:
        self._reply(text_reply(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered"))

    do_HEAD = do_GET  # noqa: N815 (as above)
    do_DELETE = do_OPTIONS = do_PATCH = do_PUT = do_POST  # noqa: N815 (as above)

    def _in_folder(self, path: str) -> Callable[[], StatusReply] | None:
        for name, folder in self.server.folders.items():
            if path.startswith(name):
                authorization = self.headers.get("Authorization", "")
                question = PageQuestion(path.removeprefix(name), authorization)
                return partial(folder, question)
        return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request without repeating any of it."""
        del message, explain
        status = HTTPStatus(code)
        self._reply(text_reply(status, status.phrase))

    def log_message(self, *_: object) -> None:
        """Leave requests out of the log."""

    def _reply(self, reply: StatusReply) -> None:
        self.send_response_only(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", f"{len(reply.body)}")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)
