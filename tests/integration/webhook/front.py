"""A webhook that misbehaves on command, in the place of ours."""

import json
import ssl
from collections.abc import Callable
from pathlib import Path

from tests.support.authority import Leaf
from tests.support.servers import Exchange, HttpServer

SLOW_SECONDS = 4.0  # the hooks wait for 3 at most


class Front(HttpServer):
    """Serves until its block ends; `fault` says how."""

    def __init__(self, folder: Path, leaf: Leaf) -> None:
        super().__init__()
        self.fault = "none"
        self.calls = 0
        self._folder = folder
        self.present(leaf)

    def handle(self, exchange: Exchange) -> None:
        self.calls += 1
        exchange.close_connection = True  # every handshake meets the certificate of the moment
        FAULTS[self.fault](exchange, json.loads(exchange.body)["request"]["uid"])

    def present(self, leaf: Leaf) -> None:
        """Show another certificate from the next handshake on."""
        certificate, key = self._folder / "front.crt", self._folder / "front.key"
        certificate.write_bytes(leaf.certificate)
        key.write_bytes(leaf.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.tls = context


def _review(uid: str, **response: object) -> bytes:
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": uid, "allowed": True, **response},
        }
    ).encode()


def _slow(exchange: Exchange, uid: str) -> None:
    exchange.hang(SLOW_SECONDS)
    exchange.answer(200, _review(uid))


FAULTS: dict[str, Callable[[Exchange, str], None]] = {
    "none": lambda exchange, uid: exchange.answer(200, _review(uid)),
    "hanging": lambda exchange, _: exchange.hang(60.0),
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
