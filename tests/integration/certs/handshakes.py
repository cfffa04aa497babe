"""
A client that trusts just what the bundle says at the moment, and never keeps a connection.

The API server keeps its connections for a minute and a half and would meet few of the certificates.
"""

import base64
import socket
import ssl

from kube import Client
from tests.integration.certs.site import CONFIGURATION, LOOPBACK
from tests.support.threads import Beside

CALL_SECONDS = 30.0
_PAUSE_SECONDS = 0.02


class Handshakes(Beside):
    """Reads the bundle, shakes hands under the verified name, and again, until its block ends."""

    def __init__(self, client: Client, port: int, name: str) -> None:
        super().__init__()
        self.made = 0
        self.failed: list[str] = []
        self.leaves: set[bytes | None] = set()
        self._client = client
        self._port = port
        self._name = name

    def run(self) -> None:
        while not self.over.wait(_PAUSE_SECONDS):
            try:
                for bundle in self._bundles():
                    self.leaves.add(self._shake_hands(bundle))
                    self.made += 1
            except (OSError, ValueError) as error:
                self.failed.append(repr(error))

    def _bundles(self) -> set[str]:
        hooks = self._client.get(CONFIGURATION)["webhooks"]
        return {base64.b64decode(hook["clientConfig"]["caBundle"]).decode() for hook in hooks}

    def _shake_hands(self, bundle: str) -> bytes | None:
        trust = ssl.create_default_context(cadata=bundle)
        trust.verify_flags |= ssl.VERIFY_X509_STRICT
        with (
            socket.create_connection((LOOPBACK, self._port), timeout=CALL_SECONDS) as plain,
            trust.wrap_socket(plain, server_hostname=self._name) as secure,
        ):
            return secure.getpeercert(binary_form=True)
