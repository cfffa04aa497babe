"""
A webhook that misbehaves on command, in the place of ours.
"""

from __future__ import annotations

import json
import ssl
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.support.threads import PatientServer, Serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.authority import Leaf

SLOW_SECONDS = 4.0  # the hooks wait for 3 at most


class Exchange(BaseHTTPRequestHandler):
    """
    One connection with one request; every handshake meets the certificate of the moment.
    """

    server: _Server

    def setup(self) -> None:
        self.request = self.server.front.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.front.calls += 1
        FAULTS[self.server.front.fault](self, json.loads(body)["request"]["uid"])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        del format, args  # quiet

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def wait(self, seconds: float) -> None:
        self.server.front.over.wait(seconds)


class _Server(PatientServer):
    def __init__(self, front: Front) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.front = front


class Front(Serving):
    """
    Serves until its block ends; `fault` says how.
    """

    def __init__(self, folder: Path, leaf: Leaf) -> None:
        server = _Server(self)
        super().__init__(server)
        self.port = server.server_port
        self.fault = "none"
        self.calls = 0
        self._folder = folder
        self.present(leaf)

    def present(self, leaf: Leaf) -> None:
        """
        Show another certificate from the next handshake on.
        """
        certificate, key = self._folder / "front.crt", self._folder / "front.key"
        certificate.write_bytes(leaf.certificate)
        key.write_bytes(leaf.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.context = context


def _review(uid: str, **response: object) -> bytes:
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": uid, "allowed": True, **response},
        }
    ).encode()


def _slow(exchange: Exchange, uid: str) -> None:
    exchange.wait(SLOW_SECONDS)
    exchange.answer(200, _review(uid))


FAULTS: dict[str, Callable[[Exchange, str], None]] = {
    "none": lambda exchange, uid: exchange.answer(200, _review(uid)),
    "hanging": lambda exchange, _: exchange.wait(60.0),
    "slow": _slow,
    "error": lambda exchange, _: exchange.answer(500, b"internal error\n"),
    "junk": lambda exchange, _: exchange.answer(200, b"hello {"),
    "empty": lambda exchange, _: exchange.answer(200, b""),
    "wrong uid": lambda exchange, uid: exchange.answer(200, _review(uid[::-1])),
    "no review": lambda exchange, _: exchange.answer(200, b'{"kind": "Pod", "apiVersion": "v1"}'),
    "junk patch": lambda exchange, uid: exchange.answer(
        200, _review(uid, patchType="JSONPatch", patch="bm8gcGF0Y2g=")
    ),
}
