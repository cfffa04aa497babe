"""Which certificate each replica of the webhook really serves, learnt by calling it."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

from certs.ports import Replica, Served
from kube import group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certs.material import ServiceNames
    from certs.ports import Api

CALL_SECONDS = 3.0
PORT_NAME: Final = "https"
"""The port of the Service that the API server calls; its other port speaks no TLS."""


def endpoints_of(api: Api, names: ServiceNames) -> tuple[Replica, ...]:
    """
    Return the address and port of every replica behind the webhook's Service.

    Replicas that are not ready count too: they serve again in a moment, with what they hold.
    """
    path = group("discovery.k8s.io/v1", "namespaces", names.namespace, "endpointslices")
    query = {"labelSelector": f"kubernetes.io/service-name={names.service}"}
    found = {
        Replica(str(address), int(port["port"])): None
        for piece in api.list(path, query).items
        for port in piece.get("ports") or []
        if port.get("port") and port.get("name") in {PORT_NAME, "", None}
        for endpoint in piece.get("endpoints") or []
        for address in endpoint.get("addresses") or []
    }
    return tuple(found)


def call_each(endpoints: Sequence[Replica], name: str) -> tuple[Served, ...]:
    """Call every endpoint and return what each serves under the verified name."""
    return tuple(_call(endpoint, name) for endpoint in endpoints)


def _call(endpoint: Replica, name: str) -> Served:
    # Not verified on purpose: the question is which certificate stands there, not whether to trust.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    address = (endpoint.host, endpoint.port)
    try:
        with (
            socket.create_connection(address, timeout=CALL_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=name) as secure,
        ):
            return Served(endpoint, secure.getpeercert(binary_form=True))
    except OSError as error:
        return Served(endpoint, None, str(error) or type(error).__name__)
