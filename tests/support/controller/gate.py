"""
A gate between a program and its API server, where a request can be held, lost, or its answer be.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path

from simulator.controlplane import ControlPlane
from tests.support.http_server import Exchange, HttpServer

_CHUNK = 2**16
_HOP = frozenset({"date", "connection", "transfer-encoding", "content-length", "keep-alive"})
_SECONDS = 300.0

Chosen = Callable[[str, str], bool]


class Trouble(Enum):
    """What happens to a request, or to the answer of one that has arrived."""

    LOSE = auto()
    LOSE_ANSWER = auto()
    HOLD = auto()
    HOLD_ANSWER = auto()


def scaling(owner: str) -> Chosen:
    """Choose what scales a Deployment of that name."""
    return lambda method, path: method == "PUT" and path.endswith(f"/deployments/{owner}/scale")


def noting(owner: str) -> Chosen:
    """Choose what writes a note on a Deployment of that name."""
    return lambda method, path: method == "PATCH" and path.endswith(f"/deployments/{owner}")


class Gate(HttpServer):
    """
    Hands requests on, with whoever's token they come. Each trouble happens once, to the first
    request that it is about; what is refused is refused until `let_in`.
    """

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._port = plane.port
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._troubles: list[tuple[Trouble, Chosen]] = []
        self._refuse: Chosen | None = None
        self._open = threading.Event()
        self.refused = threading.Event()
        self.held = threading.Event()
        self.statuses: list[tuple[str, str, int]] = []

    @property
    def over_with(self) -> bool:
        """Return whether every trouble has happened."""
        return not self._troubles

    def kubeconfig(self, folder: Path, token: str) -> Path:
        """Write a kubeconfig that leads through the gate."""
        path = folder / "through-the-gate"
        named = {"name": "gate"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{**named, "cluster": {"server": self.url}}],
            "users": [{**named, "user": {"token": token}}],
            "contexts": [{**named, "context": {"cluster": "gate", "user": "gate"}}],
            "current-context": "gate",
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def trouble(self, what: Trouble, chosen: Chosen) -> None:
        self._troubles.append((what, chosen))

    def refuse(self, chosen: Chosen) -> None:
        self.refused.clear()
        self._refuse = chosen

    def let_in(self) -> None:
        self._refuse = None

    def let_go(self) -> None:
        self._open.set()

    def handle(self, exchange: Exchange) -> None:
        method, path = exchange.command, exchange.path.partition("?")[0]
        if self._refuse is not None and self._refuse(method, path):
            exchange.answer(503, b"{}")
            self.refused.set()
            return
        if self._strikes(Trouble.LOSE, method, path):
            exchange.cut()
            return
        if self._strikes(Trouble.HOLD, method, path):
            self._wait()
        try:
            self._hand_on(exchange, method, path)
        except (OSError, http.client.HTTPException):
            exchange.cut()

    def _strikes(self, what: Trouble, method: str, path: str) -> bool:
        for item in self._troubles:
            if item[0] is what and item[1](method, path):
                self._troubles.remove(item)
                return True
        return False

    def _wait(self) -> None:
        self.held.set()
        self._open.wait(_SECONDS)

    def _hand_on(self, exchange: Exchange, method: str, path: str) -> None:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=_SECONDS, context=self._tls
        )
        headers = {name: text for name, text in exchange.headers.items() if name.lower() != "host"}
        try:
            connection.request(method, exchange.path, exchange.body or None, headers)
            answer = connection.getresponse()
            self.statuses.append((method, path, answer.status))
            if self._strikes(Trouble.LOSE_ANSWER, method, path):
                answer.read()
                exchange.cut()
                return
            if self._strikes(Trouble.HOLD_ANSWER, method, path):
                self._wait()
            self._answer(exchange, answer)
        finally:
            connection.close()

    def _answer(self, exchange: Exchange, answer: http.client.HTTPResponse) -> None:
        kept = {name: text for name, text in answer.getheaders() if name.lower() not in _HOP}
        exchange.send_head(answer.status, {**kept, "Transfer-Encoding": "chunked"})
        while not self.over.is_set() and (chunk := answer.read1(_CHUNK)):
            exchange.send_chunk(chunk)
        exchange.wfile.write(b"0\r\n\r\n")
        exchange.wfile.flush()
