"""
A stand-in for agents: a page at `/v1/snapshot`, where the API server's pod proxy can reach it.
"""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler

from tests.support.threads import PatientServer, Serving

_SOMEWHERE = ("192.0.2.1", 9)  # for documentation only (RFC 5737); nothing is sent there


def own_address() -> str:
    """
    Return an address of this machine that is not loopback, which the proxy refuses for pods.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_SOMEWHERE)
        return str(probe.getsockname()[0])


class Page(BaseHTTPRequestHandler):
    """
    Answers every path of its server's pages.
    """

    server: _Server

    def do_GET(self) -> None:
        status, text = self.server.pages.get(self.path, (404, "no such page"))
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's own name)
        del format, args  # quiet


class _Server(PatientServer):
    def __init__(self, address: str) -> None:
        super().__init__((address, 0), Page)
        self.pages: dict[str, tuple[int, str]] = {}


class StandIn(Serving):
    """
    Serves what a test says; use it as a context manager.
    """

    def __init__(self) -> None:
        self._server = _Server(own_address())
        super().__init__(self._server)
        self.address, self.port = str(self._server.server_address[0]), self._server.server_port

    def says(self, path: str, text: str, status: int = 200) -> None:
        self._server.pages[path] = (status, text)
