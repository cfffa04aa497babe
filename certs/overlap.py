"""
The end of an overlap: old CAs are trusted until every replica was seen serving the new leaf.

Seen twice, a moment apart: a replica that was just being made may have mounted the old leaf before
anybody could know its address.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

from certs.bundle import Injector
from certs.facts import der_of
from certs.ports import OvertakenError, Replica, Served
from certs.store import SecretStore
from kube import group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from certs.material import KeyPair, ServiceNames, WaitSettings
    from certs.ports import Api, World


_POLL_SECONDS = 1.0
_LOOKS = 2


class Overlap:
    """Looks after old CAs of ours that are still trusted."""

    def __init__(
        self,
        world: World,
        names: ServiceNames,
        patience: WaitSettings,
        endpoints: tuple[Replica, ...],
        say: Callable[[str], None],
    ) -> None:
        self._world = world
        self._names = names
        self._patience = patience
        self._endpoints = endpoints
        self._say = say
        self._store = SecretStore(world.api, names.namespace)
        self._injector = Injector(world.api)

    def end(self, leaf: KeyPair, authority: bytes) -> tuple[str, ...] | None:
        """
        Stop trusting old CAs; return None once that was done, empty where there was nothing to do,
        and otherwise what stands in the way.

        Raises ConflictError or OvertakenError where another run is at work.
        """
        if self._injector.read().only(authority):
            return ()
        waiting = self._wait(leaf)
        if waiting:
            return waiting
        before = self._injector.read()
        # Read after the bundles: a CA that is newer than this cannot be in what was read before it.
        ca = self._store.read_ca().pair
        if ca is None or ca.certificate != authority:
            raise OvertakenError("another run has issued a newer CA")
        return None if self._injector.trust_only(before, authority) else ()

    def left(self, authority: bytes) -> tuple[str, ...]:
        """Return what keeps old CAs trusted where a run may not write who is trusted."""
        bundles = self._injector.read()
        if bundles.is_empty or bundles.only(authority):
            return ()
        return ("this run may renew the leaf alone; the install job ends it, applied again",)

    def _wait(self, leaf: KeyPair) -> tuple[str, ...]:
        deadline = self._world.clock.monotonic() + self._patience.wait_seconds
        looks, said = 0, ""
        while True:
            waiting = self._waiting(leaf)
            looks = 0 if waiting else looks + 1
            if looks == _LOOKS:
                return ()
            if not waiting:
                self._world.clock.sleep(self._patience.settle_seconds)
                continue
            if self._world.clock.monotonic() >= deadline:
                return waiting
            if self._store.read_leaf().pair != leaf:
                raise OvertakenError(
                    "another run has stored a newer leaf, so nobody serves this one"
                )
            if (text := "; ".join(waiting)) != said:
                said = text
                self._say(f"waiting up to {self._patience.wait_seconds:g} s: {text}")
            self._world.clock.sleep(_POLL_SECONDS)

    def _waiting(self, leaf: KeyPair) -> tuple[str, ...]:
        endpoints = self._endpoints or endpoints_of(self._world.api, self._names)
        if not endpoints:
            return ("no replica of the webhook is there to be asked what it serves",)
        wanted = der_of(leaf)
        served = self._world.ask(endpoints, self._names.verified)
        return tuple(_trouble(item) for item in served if item.certificate != wanted)


def _trouble(served: Served) -> str:
    if served.certificate is None:
        return f"{served.endpoint} does not answer ({served.trouble})"
    return f"{served.endpoint} still serves another certificate"


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
