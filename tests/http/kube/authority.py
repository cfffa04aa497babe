"""
Certificate authorities of the tests, on disk as Kubernetes mounts them.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from pathlib import Path


class Authority:
    """
    A CA that vouches for servers and clients.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self._folder = folder
        self.ca_file = folder / f"{name}.crt"
        self.ca_file.write_bytes(self._ca.cert_pem.bytes())

    @property
    def ca_pem(self) -> bytes:
        return self._ca.cert_pem.bytes()

    def server_context(self, *names: str, demand_client: bool = False) -> ssl.SSLContext:
        """
        Make a server's side for these names, by default the loopback address.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf = self._ca.issue_cert(*(names or ("127.0.0.1",)), key_type=trustme.KeyType.ECDSA)
        leaf.configure_cert(context)
        if demand_client:
            self._ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_pem(self, name: str) -> tuple[bytes, bytes]:
        """
        Issue a client certificate and its key.
        """
        leaf = self._ca.issue_cert(common_name=name, key_type=trustme.KeyType.ECDSA)
        return leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes()
