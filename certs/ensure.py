"""
One idempotent run: whatever is missing, broken or due is renewed, and nobody's request fails.

The order makes every crash harmless. A new CA is stored first; every hook trusts it beside the old
one before a leaf of it is served; the old one goes only after each replica was seen serving the new
leaf. A run that dies in between leaves a state that works, and the next run goes on from there.
Several runs at once are harmless: every write names the version it is based on.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from certs.bundle import read_bundle
from certs.dial import Served, endpoints_of, serve_which
from certs.errors import ContendedError
from certs.facts import look_at
from certs.inject import Injector, Trust
from certs.issue import issue_ca, issue_leaf
from certs.renewal import Keep, Reason, Renewal, RenewCA, RenewLeaf, decide
from certs.store import Secret, Store
from gpufence.errors import InvalidError
from kube import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

    from certs.material import Names, Pair
    from kube import Client

ATTEMPTS = 30
_POLL_SECONDS = 1.0


class Clock(Protocol):
    """
    The time of day for certificates, and a way to let time pass.
    """

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def chance(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Wishes:
    """
    What a run is asked for beyond what is due.

    `settle_seconds` is how long the API servers get to see a new CA before a leaf of it is served;
    `wait_seconds` how long the run waits for replicas to serve it.
    """

    force_leaf: bool = False
    force_ca: bool = False
    settle_seconds: float = 5.0
    wait_seconds: float = 120.0
    endpoints: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """
    What a run did, in sentences; `finished` is False while an old CA is still trusted.
    """

    done: tuple[str, ...]
    finished: bool
    pending: tuple[str, ...] = field(default=())


class Run:
    """
    A run against one cluster.
    """

    def __init__(
        self, client: Client, names: Names, clock: Clock, say: Callable[[str], None]
    ) -> None:
        self._client = client
        self._names = names
        self._clock = clock
        self._store = Store(client, names.namespace)
        self._injector = Injector(client)
        self._say = say
        self._done: list[str] = []

    def ensure(self, wishes: Wishes) -> Report:
        """
        Bring everything into order.

        Raises `ContendedError` where somebody else's writes never ceased.
        """
        forced = wishes
        for _ in range(ATTEMPTS):
            try:
                leaf = self._renew(forced)
                pending = self._retire(leaf, wishes)
                return Report(tuple(self._done), not pending, pending)
            except ConflictError:
                # Somebody else was faster: what was forced has happened or will, by their hand.
                forced = wishes if not self._done else Wishes(settle_seconds=wishes.settle_seconds)
                self._clock.sleep(0.05 + 0.2 * self._clock.chance())
        raise ContendedError(ATTEMPTS)

    def _renew(self, wishes: Wishes) -> Secret:
        """
        Renew what is due and return the Secret whose leaf is to be served.
        """
        ca, leaf = self._store.read_ca(), self._store.read_leaf()
        now = self._clock.now()
        renewal = _asked(decide(look_at(ca.pair, leaf.pair), self._names.all, now), wishes)
        if isinstance(renewal, RenewCA):
            ca = self._store.write_ca(ca, issue_ca(now))
            self._note(f"new CA: {renewal.reason}")
        authority = _pair(ca)
        trusted = self._trust(leaf, authority)
        if isinstance(renewal, Keep):
            return leaf
        if trusted and leaf.pair is not None:
            self._clock.sleep(wishes.settle_seconds)
        fresh = issue_leaf(authority, self._names, self._clock.now())
        leaf = self._store.write_leaf(leaf, fresh, authority.certificate)
        self._note(f"new leaf: {renewal.reason}")
        return leaf

    def _trust(self, leaf: Secret, authority: Pair) -> bool:
        """
        Let every hook trust the CA, and the one that signed what may still be served.
        """
        before = self._injector.read()
        for note in before.notes:
            self._note(note)
        changed = self._injector.trust_also(before, *_still_served(leaf), authority.certificate)
        if changed:
            self._note(f"trusted by {len(before.hooks)} hook(s) of the webhook configuration")
        return changed

    def _retire(self, leaf: Secret, wishes: Wishes) -> tuple[str, ...]:
        """
        Stop trusting old CAs once every replica serves the leaf; return what stands in the way.
        """
        before = self._injector.read()
        if before.only(leaf.authority):
            return ()
        deadline = self._clock.now() + wishes.wait_seconds
        while True:
            waiting = self._waiting(leaf, wishes)
            if not waiting:
                return self._trust_only(leaf)
            if self._clock.now() >= deadline:
                return waiting
            self._say(f"old CA still needed: {'; '.join(waiting)}")
            self._clock.sleep(_POLL_SECONDS)

    def _trust_only(self, leaf: Secret) -> tuple[str, ...]:
        before: Trust = self._injector.read()
        if self._store.read_leaf().version != leaf.version:
            return ("the leaf was renewed meanwhile by another run",)
        if self._injector.trust_only(before, leaf.authority):
            self._note("old CA no longer trusted: every replica serves the new leaf")
        return ()

    def _waiting(self, leaf: Secret, wishes: Wishes) -> tuple[str, ...]:
        endpoints = wishes.endpoints or endpoints_of(self._client, self._names.namespace)
        if not endpoints:
            return ("no replica of the webhook can be asked what it serves",)
        wanted = ssl.PEM_cert_to_DER_cert(_pair(leaf).certificate.decode("ascii").strip())
        served = serve_which(endpoints, self._names.verified)
        return tuple(_trouble(item) for item in served if item.certificate != wanted)

    def _note(self, text: str) -> None:
        self._done.append(text)
        self._say(text)


def _asked(renewal: Renewal, wishes: Wishes) -> Renewal:
    if isinstance(renewal, RenewCA) or not (wishes.force_ca or wishes.force_leaf):
        return renewal
    if wishes.force_ca:
        return RenewCA(Reason.ASKED)
    return RenewLeaf(Reason.ASKED) if isinstance(renewal, Keep) else renewal


def _still_served(leaf: Secret) -> tuple[bytes, ...]:
    """
    Return the CA beside the stored leaf, if it is one of ours: replicas may serve that leaf yet.
    """
    try:
        return read_bundle(leaf.authority, "ca.crt").ours
    except InvalidError:
        return ()


def _pair(secret: Secret) -> Pair:
    if secret.pair is None:
        raise LookupError(f"secret {secret.name} was emptied while it was being read")
    return secret.pair


def _trouble(served: Served) -> str:
    if served.certificate is None:
        return f"{served.endpoint} does not answer ({served.trouble})"
    return f"{served.endpoint} still serves an older certificate"
