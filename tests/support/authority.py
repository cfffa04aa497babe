"""
Serving certificates, put into a folder as Kubernetes or a person would.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("127.0.0.1", "localhost", "gpufence-webhook.gpufence-system.svc")


@dataclass(frozen=True)
class Leaf:
    certificate: bytes
    key: bytes


class Authority:
    """
    A CA of the tests.
    """

    def __init__(self) -> None:
        self._ca = trustme.CA(key_type=trustme.KeyType.ECDSA)

    @property
    def pem(self) -> bytes:
        return self._ca.cert_pem.bytes()

    def leaf(self, *names: str, days: float = 30.0, begins_in_days: float = -1.0) -> Leaf:
        now = datetime.now(UTC)
        made = self._ca.issue_cert(
            *(names or NAMES),
            not_before=now + timedelta(days=begins_in_days),
            not_after=now + timedelta(days=days),
            key_type=trustme.KeyType.ECDSA,
        )
        chain = b"".join(each.bytes() for each in made.cert_chain_pems)
        return Leaf(chain, made.private_key_pem.bytes())

    def client_context(self) -> ssl.SSLContext:
        """
        Trust this CA and no other.
        """
        context = ssl.create_default_context()
        self._ca.configure_trust(context)
        return context


def write_files(folder: Path, leaf: Leaf) -> None:
    """
    Write the two files one after the other, as a person does.
    """
    (folder / "tls.crt").write_bytes(leaf.certificate)
    (folder / "tls.key").write_bytes(leaf.key)


def write_secret(folder: Path, leaf: Leaf, generation: int) -> None:
    """
    Write a new generation and swap `..data`, as the kubelet does for a Secret's volume.
    """
    data = folder / f"..generation-{generation}"
    data.mkdir()
    write_files(data, leaf)
    link = folder / "..data_tmp"
    link.symlink_to(data.name)
    link.rename(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
