"""
One HTTP server for all tests that need another side, over real sockets and with TLS where wanted.
"""

from __future__ import annotations

import socket
import ssl
import time
from abc import abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.threads import Serving

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 30.0


_SOMEWHERE = ("192.0.2.1", 9)  # for documentation only (RFC 5737); nothing is sent there


def own_address() -> str:
    """
    Return an address of this machine that is not loopback, which the API server's proxy refuses for
    pods.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_SOMEWHERE)
        return str(probe.getsockname()[0])


class HttpServer(Serving):
    """
    Use it as a context manager; `tls` is what the next connection meets. Its answers are dated by a
    clock that is `clock_ahead_seconds` ahead.
    """

    clock_ahead_seconds = 0.0

    def __init__(self, tls: ssl.SSLContext | None = None, address: str = LOOPBACK) -> None:
        server = _Server(self, address)
        super().__init__(server)
        self.tls = tls
        self.address, self.port = address, server.server_port
        self.url = f"{'http' if tls is None else 'https'}://{address}:{self.port}"

    @abstractmethod
    def handle(self, exchange: Exchange) -> None:
        """Answer one request, or do not."""


class Exchange(BaseHTTPRequestHandler):
    """One connection; several requests may come by it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's delayed ACK
    server: _Server

    def setup(self) -> None:
        # In the connection's own thread: a slow handshake must not block the others.
        if self.server.owner.tls is not None:
            self.request = self.server.owner.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, ssl.SSLError, TimeoutError):
            self.close_connection = True

    def do_any(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.owner.handle(self)

    do_GET = do_any  # noqa: N815 (the names http.server calls)
    do_POST = do_any  # noqa: N815 (as above)
    do_PUT = do_any  # noqa: N815 (as above)
    do_PATCH = do_any  # noqa: N815 (as above)
    do_DELETE = do_any  # noqa: N815 (as above)
    do_CONNECT = do_any  # noqa: N815 (as above)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's own name)
        del format, args  # quiet

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.log_request(status)
        self.send_response_only(status)
        if not any(name.lower() == "date" for name in headers):
            at = time.time() + self.server.owner.clock_ahead_seconds
            self.send_header("Date", self.date_time_string(at))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer at once and completely."""
        self.send_head(status, {"Content-Length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def hang(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Say nothing more until the time or the test is over."""
        self.server.owner.over.wait(seconds)
        self.close_connection = True

    def cut(self) -> None:
        """Break the connection in the middle."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    """Its clients may come in crowds, hang, turn away or be killed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, owner: HttpServer, address: str) -> None:
        super().__init__((address, 0), Exchange)
        self.owner = owner

    def handle_error(self, request: object, client_address: object) -> None:
        del request, client_address  # a client that goes away is part of many tests
