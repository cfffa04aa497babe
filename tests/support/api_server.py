"""
An API server that says what a test told it to, over real sockets, and remembers what it was asked.

It knows nothing of Kubernetes: each request takes the next answer scripted for it, the last one
again and again. Requests are told apart by "GET /path", watches by "WATCH /path".
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from tests.support.threads import PatientServer, Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kube import JsonObject

PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Seen:
    """
    A request as it arrived.
    """

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


class Exchange(BaseHTTPRequestHandler):
    """
    One connection; answers are functions that write to it.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's delayed ACK
    server: _Server

    def setup(self) -> None:
        # In the connection's own thread: a slow handshake must not block the others.
        if self.server.tls is not None:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
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
        address = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        seen = Seen(
            method=self.command,
            path=self.path if self.command == "CONNECT" else address.path,
            query=dict(parse_qsl(address.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
        )
        self.server.script.answer_to(seen)(self)

    do_GET = do_any  # noqa: N815 (the names http.server calls)
    do_POST = do_any  # noqa: N815 (as above)
    do_PUT = do_any  # noqa: N815 (as above)
    do_PATCH = do_any  # noqa: N815 (as above)
    do_DELETE = do_any  # noqa: N815 (as above)
    do_CONNECT = do_any  # noqa: N815 (as above)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del code, size  # quiet

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's own name)
        del format, args  # quiet

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def hang(self) -> None:
        """
        Say nothing more until the test is over.
        """
        self.server.script.over.wait(PATIENCE_SECONDS)
        self.close_connection = True

    def cut(self) -> None:
        """
        Break the connection in the middle.
        """
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


if TYPE_CHECKING:
    Answer = Callable[[Exchange], None]


class _Server(PatientServer):
    def __init__(self, script: ApiServer, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.script = script
        self.tls = tls


class ApiServer(Serving):
    """
    The script and its stage; use it as a context manager.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        server = _Server(self, tls)
        super().__init__(server)
        self._answers: dict[str, list[Answer]] = {}
        self._seen: list[Seen] = []
        self._changed = threading.Condition()
        scheme = "http" if tls is None else "https"
        self.port = server.server_port
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def on(self, key: str, *answers: Answer) -> None:
        """
        Script the answers to "GET /path", in order, in place of earlier ones.
        """
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

    def seen(self, key: str) -> list[Seen]:
        with self._changed:
            return [each for each in self._seen if each.key == key]

    def wait_for(self, key: str, count: int) -> list[Seen]:
        """
        Wait until a request arrived so often.
        """

        def enough() -> bool:
            return sum(each.key == key for each in self._seen) >= count

        with self._changed:
            assert self._changed.wait_for(enough, PATIENCE_SECONDS), f"{key} did not come {count}x"
        return self.seen(key)


def reply(
    body: JsonObject | bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    """
    Answer at once and completely.
    """
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(exchange: Exchange) -> None:
        exchange.send_head(status, {"Content-Length": str(len(data)), **(headers or {})})
        exchange.wfile.write(data)

    return answer


def hang() -> Answer:
    """
    Take the request and never answer.
    """
    return lambda exchange: exchange.hang()


def cut() -> Answer:
    """
    Take the request and break the connection.
    """
    return lambda exchange: exchange.cut()


def watch(*pieces: JsonObject | bytes, then: str = "end") -> Answer:
    """
    Stream chunks, objects as lines of their own, then "end" properly, "hang" or "cut".
    """

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
