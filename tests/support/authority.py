"""Certificates, put into a folder as Kubernetes or a person would."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

NAMES = ("127.0.0.1", "localhost", "gpufence-webhook.gpufence-system.svc")


@dataclass(frozen=True)
class Leaf:
    certificate: bytes
    key: bytes


class Authority:
    """A CA of the tests for servers and clients; given a folder, it is a file there."""

    def __init__(self, folder: Path | None = None, name: str = "ca") -> None:
        self._ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.ca_file = (folder or Path()) / f"{name}.crt"
        if folder is not None:
            self.ca_file.write_bytes(self.pem)

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
        """Trust this CA and no other."""
        context = ssl.create_default_context()
        self._ca.configure_trust(context)
        return context

    def server_context(self, *names: str, demand_client: bool = False) -> ssl.SSLContext:
        """Make a server's side for these names, by default the loopback address."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf = self._ca.issue_cert(*(names or NAMES[:1]), key_type=trustme.KeyType.ECDSA)
        leaf.configure_cert(context)
        if demand_client:
            self._ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_pem(self, name: str) -> tuple[bytes, bytes]:
        """Issue a client's certificate and its key."""
        made = self._ca.issue_cert(common_name=name, key_type=trustme.KeyType.ECDSA)
        return made.cert_chain_pems[0].bytes(), made.private_key_pem.bytes()


def write_files(folder: Path, leaf: Leaf) -> None:
    """Write the two files one after the other, as a person does."""
    (folder / "tls.crt").write_bytes(leaf.certificate)
    (folder / "tls.key").write_bytes(leaf.key)


def write_secret(folder: Path, leaf: Leaf, generation: int) -> None:
    """Write a new generation and swap `..data`, as the kubelet does for a Secret's volume."""
    data = folder / f"..generation-{generation}"
    data.mkdir()
    write_files(data, leaf)
    link = folder / "..data_tmp"
    link.symlink_to(data.name)
    link.rename(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
