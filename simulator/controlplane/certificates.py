"""
The certificates of one control plane: made at its start, worthless after its end.

Users are told apart as in a real cluster, by the client certificate: its common name is the user
and its organisation the group.
"""

from dataclasses import dataclass
from pathlib import Path

import trustme

from simulator.controlplane.ports import LOOPBACK
from simulator.controlplane.programs import SERVICE_ADDRESS

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
    """
    Whom the API server takes the holder of a client certificate for.
    """

    name: str
    group: str | None = None


ADMIN = User("gpufence-admin", "system:masters")
SCHEDULER = User("system:kube-scheduler")
CONTROLLER_MANAGER = User("system:kube-controller-manager")
USERS = {"admin": ADMIN, "scheduler": SCHEDULER, "controller-manager": CONTROLLER_MANAGER}


def node_user(node: str) -> User:
    """
    Name the identity that the Node authorizer expects of a node's own agent.
    """
    return User(f"system:node:{node}", "system:nodes")


@dataclass(frozen=True)
class Pair:
    """
    A certificate and its key, both PEM.
    """

    certificate: bytes
    key: bytes


class Authority:
    """
    The one authority that everything in this control plane trusts.
    """

    def __init__(self) -> None:
        self._authority = trustme.CA(
            organization_name="gpufence simulator", key_type=trustme.KeyType.ECDSA
        )

    @property
    def pair(self) -> Pair:
        """
        The authority itself, for those who sign or verify with it.
        """
        return Pair(
            self._authority.cert_pem.bytes(),
            self._authority.private_key_pem.bytes(),
        )

    def for_server(self) -> Pair:
        """
        Certify whoever serves on loopback or, to pods, as the Service of the API server.
        """
        return self._issue(LOOPBACK, "localhost", *SERVICE_NAMES, user=None)

    def for_user(self, user: User) -> Pair:
        """
        Certify a user towards the API server.
        """
        return self._issue(_UNUSED_NAME, user=user)

    def _issue(self, *names: str, user: User | None) -> Pair:
        leaf = self._authority.issue_cert(
            *names,
            common_name=user.name if user else None,
            organization_name=user.group if user else None,
            key_type=trustme.KeyType.ECDSA,
        )
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        return Pair(chain, leaf.private_key_pem.bytes())


def write_secret(path: Path, content: bytes) -> Path:
    """
    Write a file that only its owner may read, from its first moment on.
    """
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
