"""A webhook that misbehaves on command, in the place of ours."""

import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from tests.support import objects
from tests.support.authority import Leaf
from tests.support.servers import Exchange, HttpServer
from tests.support.webhook_site import WebhookSite, annotations_of

POD_SECONDS = 3.0
BINDING_SECONDS = 1.0
SPARE_SECONDS = 5.0  # of a busy machine; without a timeout of ours it would take 10 s, or 60
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


def assert_made_and_bound(site: WebhookSite, seconds: float = POD_SECONDS) -> None:
    """Create a pod in `cap` and bind it: both pass in time, without us, and are counted."""
    before = site.fail_opens()
    with site.namespace("cap") as name:
        began = time.monotonic()
        created = site.create(name, objects.gpu_pod("trainer"))
        made = time.monotonic()
        site.bind(name, created, "nowhere")
        bound = time.monotonic()
        found = site.pod(name, "trainer")

    assert {} == annotations_of(found)
    assert "nowhere" == found["spec"]["nodeName"]
    assert made - began < seconds + SPARE_SECONDS
    assert bound - made < BINDING_SECONDS + SPARE_SECONDS
    assert before + 1 == site.fail_opens()
