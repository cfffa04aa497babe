"""Other sides over real sockets: any HTTP server, and an API server that follows a script."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from kube import JsonObject
from tests.support.observing import Serving

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 30.0


_SOMEWHERE = ("192.0.2.1", 9)  # for documentation only (RFC 5737); nothing is sent there


def own_address() -> str:
    """Return an address that is not loopback, which the API server's proxy refuses for pods."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_SOMEWHERE)
        return str(probe.getsockname()[0])


class HttpServer(Serving):
    """A context manager; `tls` is for the next connection, `clock_ahead_seconds` dates answers."""

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


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        watching = self.query.get("watch") == "true"
        return f"{'WATCH' if watching else self.method} {self.path}"

    @property
    def json(self) -> object:
        parsed: object = json.loads(self.body)
        return parsed


Answer = Callable[[Exchange], None]


class ApiServer(HttpServer):
    """The script and its stage; use it as a context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None, address: str = LOOPBACK) -> None:
        super().__init__(tls, address)
        self._answers: dict[str, list[Answer]] = {}
        self._seen: list[Seen] = []
        self._changed = threading.Condition()

    def handle(self, exchange: Exchange) -> None:
        address = urlsplit(exchange.path)
        path = exchange.path if exchange.command == "CONNECT" else address.path
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in exchange.headers.items()}
        seen = Seen(exchange.command, path, query, headers, exchange.body)
        self.answer_to(seen)(exchange)

    def on(self, key: str, *answers: Answer) -> None:
        """Script the answers to "GET /path", in order, in place of earlier ones."""
        with self._changed:
            self._answers[key] = list(answers)

    def answer_to(self, seen: Seen) -> Answer:
        with self._changed:
            self._seen.append(seen)
            self._changed.notify_all()
            answers = self._answers.get(seen.key, [])
            if not answers:
                return reply({"kind": "Status", "message": f"{seen.key} is not scripted"}, 501)
            return answers.pop(0) if len(answers) > 1 else answers[0]

    def forget(self) -> None:
        """Begin without a script, and without anything seen."""
        with self._changed:
            self._answers.clear()
            self._seen.clear()

    @property
    def requests(self) -> list[Seen]:
        with self._changed:
            return list(self._seen)

    def seen(self, key: str) -> list[Seen]:
        with self._changed:
            return [each for each in self._seen if each.key == key]

    def wait_for(self, key: str, count: int) -> list[Seen]:
        """Wait until a request arrived so often."""

        def enough() -> bool:
            return sum(each.key == key for each in self._seen) >= count

        with self._changed:
            assert self._changed.wait_for(enough, PATIENCE_SECONDS), f"{key} did not come {count}x"
        return self.seen(key)


def refusal(code: int, reason: str, message: str = "no") -> Answer:
    """Answer as an API server refuses."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return reply({**body, "reason": reason, "message": message}, code)


def reply(
    body: JsonObject | bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    """Answer at once and completely."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda exchange: exchange.answer(status, data, headers)


def hang() -> Answer:
    """Take the request and never answer."""
    return lambda exchange: exchange.hang()


def cut() -> Answer:
    """Take the request and break the connection."""
    return lambda exchange: exchange.cut()


def watch(*pieces: JsonObject | bytes, then: str = "end") -> Answer:
    """Stream chunks, objects as lines of their own, then "end" properly, "hang" or "cut"."""

    def answer(exchange: Exchange) -> None:
        exchange.send_head(200, {"Transfer-Encoding": "chunked"})
        for piece in pieces:
            exchange.send_chunk(
                piece if isinstance(piece, bytes) else json.dumps(piece).encode() + b"\n"
            )
        if then == "end":
            exchange.wfile.write(b"0\r\n\r\n")
        elif then == "hang":
            exchange.hang()
        else:
            exchange.cut()

    return answer
