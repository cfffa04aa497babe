"""
Write the files that tell a Kubernetes client where to go and who it is.

They are JSON, which every reader of YAML reads, with all certificates inside, so that a file
works from anywhere on the machine.
"""

import base64
import json
from dataclasses import dataclass

from simulator.controlplane.certificates import Pair


@dataclass(frozen=True)
class Server:
    """
    The API server as clients need to know it.
    """

    url: str
    authority: bytes


def with_certificate(server: Server, pair: Pair) -> bytes:
    """
    Describe a user known by a client certificate.
    """
    return _document(
        server,
        {
            "client-certificate-data": _base64(pair.certificate),
            "client-key-data": _base64(pair.key),
        },
    )


def with_token(server: Server, token: str) -> bytes:
    """
    Describe a user known by a bearer token, such as a ServiceAccount.
    """
    return _document(server, {"token": token})


def _document(server: Server, user: dict[str, str]) -> bytes:
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
