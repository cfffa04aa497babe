"""
Who is who in one control plane: certificates, made at its start and worthless after its end, and
the kubeconfig files that carry them.

Users are told apart as in a real cluster, by the client certificate: its common name is the user
and its organisation the group. The files are JSON, which every reader of YAML reads, with all
certificates inside, so that a file works from anywhere on the machine.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

import trustme

from simulator.controlplane.programs import LOOPBACK, SERVICE_ADDRESS

# Without any name trustme writes an empty critical extension, and Go then refuses the certificate
# ("unhandled critical extension"). The API server looks at the subject only.
_UNUSED_NAME = "user.invalid"
SERVICE_NAMES = (
    SERVICE_ADDRESS,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True)
class User:
    """Whom the API server takes the holder of a client certificate for."""

    name: str
    group: str | None = None


ADMIN = User("gpufence-admin", "system:masters")
SCHEDULER = User("system:kube-scheduler")
CONTROLLER_MANAGER = User("system:kube-controller-manager")
USERS = {"admin": ADMIN, "scheduler": SCHEDULER, "controller-manager": CONTROLLER_MANAGER}


def node_user(node: str) -> User:
    return User(f"system:node:{node}", "system:nodes")


@dataclass(frozen=True)
class PemPair:
    certificate: bytes
    key: bytes


class SimulatedAuthority:
    """The one authority that everything in this control plane trusts."""

    def __init__(self) -> None:
        self._authority = trustme.CA(
            organization_name="gpufence simulator", key_type=trustme.KeyType.ECDSA
        )

    @property
    def pair(self) -> PemPair:
        """The authority itself, for those who sign or verify with it."""
        return PemPair(
            self._authority.cert_pem.bytes(),
            self._authority.private_key_pem.bytes(),
        )

    def for_server(self, *names: str) -> PemPair:
        """
        Certify whoever serves on loopback, to pods as the Service of the API server, or by further
        names.
        """
        return self._issue(LOOPBACK, "localhost", *SERVICE_NAMES, *names, user=None)

    def for_user(self, user: User) -> PemPair:
        return self._issue(_UNUSED_NAME, user=user)

    def _issue(self, *names: str, user: User | None) -> PemPair:
        leaf = self._authority.issue_cert(
            *names,
            common_name=user.name if user else None,
            organization_name=user.group if user else None,
            key_type=trustme.KeyType.ECDSA,
        )
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        return PemPair(chain, leaf.private_key_pem.bytes())


def write_secret(path: Path, content: bytes) -> Path:
    """Write a file that only its owner may read, from its first moment on."""
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


@dataclass(frozen=True)
class ServerIdentity:
    url: str
    authority: bytes


def with_certificate(server: ServerIdentity, pair: PemPair) -> bytes:
    return _document(
        server,
        {
            "client-certificate-data": _base64(pair.certificate),
            "client-key-data": _base64(pair.key),
        },
    )


def with_token(server: ServerIdentity, token: str) -> bytes:
    return _document(server, {"token": token})


def _document(server: ServerIdentity, user: dict[str, str]) -> bytes:
    cluster = {"server": server.url, "certificate-authority-data": _base64(server.authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simulator", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "simulator", "context": {"cluster": "simulator", "user": "user"}}],
        "current-context": "simulator",
    }
    return json.dumps(document, indent=2).encode()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
