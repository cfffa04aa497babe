"""
An API server that says what a test told it to, over real sockets, and remembers what it was asked.

It knows nothing of Kubernetes: each request takes the next answer scripted for it, the last one
again and again. Requests are told apart by "GET /path", watches by "WATCH /path".
"""

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from kube import JsonObject
from tests.support.http_server import LOOPBACK, PATIENCE_SECONDS, Exchange, HttpServer


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
