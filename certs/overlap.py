"""
The end of an overlap: old CAs are trusted until every replica was seen serving the new leaf.

Seen twice, a moment apart: a replica that was just being made may have mounted the old leaf before
anybody could know its address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certs.bundle import Injector
from certs.dial import endpoints_of
from certs.facts import der_of
from certs.ports import OvertakenError
from certs.store import SecretStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from certs.material import KeyPair, ServiceNames, WaitSettings
    from certs.ports import Replica, Served, World

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
