"""
A stand-in for agents: a page at `/v1/snapshot`, where the API server's pod proxy can reach it.
"""

from __future__ import annotations

import socket

from tests.support.http_server import Exchange, HttpServer

_SOMEWHERE = ("192.0.2.1", 9)  # for documentation only (RFC 5737); nothing is sent there


def own_address() -> str:
    """
    Return an address of this machine that is not loopback, which the proxy refuses for pods.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_SOMEWHERE)
        return str(probe.getsockname()[0])


class StandIn(HttpServer):
    """
    Serves what a test says; use it as a context manager.
    """

    def __init__(self) -> None:
        super().__init__(address=own_address())
        self._pages: dict[str, tuple[int, str]] = {}

    def handle(self, exchange: Exchange) -> None:
        status, text = self._pages.get(exchange.path, (404, "no such page"))
        exchange.answer(status, text.encode())

    def says(self, path: str, text: str, status: int = 200) -> None:
        self._pages[path] = (status, text)
