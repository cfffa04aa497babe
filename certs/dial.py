"""
Which certificate each replica of the webhook really serves, learnt by calling it.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.names import WEBHOOK_SERVICE
from kube import group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kube import Client

CALL_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Served:
    """
    What one endpoint answered: its certificate as DER, or why there is none.
    """

    endpoint: str
    certificate: bytes | None
    trouble: str = ""


def endpoints_of(client: Client, namespace: str) -> tuple[tuple[str, int], ...]:
    """
    Return the address and port of every replica behind the webhook's Service.

    Replicas that are not ready count too: they serve again in a moment, with what they hold.
    """
    path = group("discovery.k8s.io/v1", "namespaces", namespace, "endpointslices")
    query = {"labelSelector": f"kubernetes.io/service-name={WEBHOOK_SERVICE}"}
    found = {
        (str(address), int(port["port"])): None
        for piece in client.list(path, query).items
        for port in piece.get("ports") or []
        for endpoint in piece.get("endpoints") or []
        for address in endpoint.get("addresses") or []
    }
    return tuple(found)


def serve_which(endpoints: Iterable[tuple[str, int]], name: str) -> tuple[Served, ...]:
    """
    Call every endpoint and return what each serves under the verified name.
    """
    return tuple(_call(host, port, name) for host, port in endpoints)


def _call(host: str, port: int, name: str) -> Served:
    endpoint = f"{host}:{port}"
    # Not verified on purpose: the question is which certificate stands there, not whether to trust.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout=CALL_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=name) as secure,
        ):
            return Served(endpoint, secure.getpeercert(binary_form=True))
    except OSError as error:
        return Served(endpoint, None, str(error) or type(error).__name__)
