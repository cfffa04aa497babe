"""
One idempotent run: whatever is missing, broken or due is renewed, and nobody's request fails.

The order makes every crash harmless. A new CA is stored first; every hook trusts it beside the old
one before a leaf of it is served; the old one goes only after each replica was seen serving the new
leaf. A run that dies in between leaves a state that works, and the next run goes on from there: the
bundle itself remembers that an overlap has to be ended.

Several runs at once are harmless. Every write names the version it is based on, and every run reads
the leaf before the CA and the CA before the bundles. So whoever replaces a leaf signs with the CA
of that leaf or with a later one, and a later CA enters a bundle only by a write that makes the
ending of an older overlap a conflict (see overlap.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from certs.bundle import Injector, normal, read_bundle
from certs.facts import look_at, signers_of
from certs.issue import issue_ca, issue_leaf
from certs.material import WaitSettings
from certs.overlap import Overlap
from certs.ports import ContendedError, NeedsInstallError, OvertakenError
from certs.renewal import Keep, Reason, Renewal, RenewCA, RenewLeaf, decide, decide_leaf, examine
from certs.store import SecretStore
from kube import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

    from certs.bundle import TrustedBundles
    from certs.material import KeyPair, ServiceNames
    from certs.ports import Replica, World
    from certs.store import Secret

ATTEMPTS = 40


class TrustMode(StrEnum):
    """What a run does about whom the API server trusts: to write that takes a dangerous right."""

    WRITE = "write"
    CHECK = "check"  # renew the leaf under the CA there is, and leave the rest to an install
    LATER = "later"  # the same, and where nothing is trusted yet make a CA, too: nothing can break


@dataclass(frozen=True, slots=True)
class RunOptions:
    """
    What a run is asked for beyond what is due, and how patient it is.

    To force a renewal is to replace what the run finds at its start: once somebody else has
    replaced that, it is done.
    """

    trust: TrustMode = TrustMode.WRITE
    force_leaf: bool = False
    force_ca: bool = False
    patience: WaitSettings = field(default_factory=WaitSettings)
    endpoints: tuple[Replica, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did, in sentences, and what keeps an old CA trusted until a later run."""

    done: tuple[str, ...]
    pending: tuple[str, ...]


class Run:
    """A run against one cluster; `say` hears of everything as it happens."""

    def __init__(
        self, world: World, names: ServiceNames, options: RunOptions, say: Callable[[str], None]
    ) -> None:
        self._clock = world.clock
        self._names = names
        self._options = options
        self._say = say
        self._store = SecretStore(world.api, names.namespace)
        self._injector = Injector(world.api)
        self._overlap = Overlap(world, names, options.patience, options.endpoints, self._say)
        self._found: tuple[KeyPair | None, KeyPair | None] | None = None
        self._done: list[str] = []
        self._noted: set[str] = set()

    def ensure(self) -> Report:
        """
        Bring everything into order.

        Raises ContendedError where somebody else's writes never ceased, and NeedsInstallError where
        the leaf alone would not do.
        """
        for _ in range(ATTEMPTS):
            try:
                leaf, authority = self._renew()
                pending = (
                    self._overlap.end(leaf, authority)
                    if self._options.trust is TrustMode.WRITE
                    else self._overlap.left(authority)
                )
            except (ConflictError, OvertakenError):
                self._clock.sleep(0.05 + 0.2 * self._clock.chance())
                continue
            if pending is None:
                self._do("the old CA is trusted no longer: every replica serves the new leaf")
            return Report(tuple(self._done), pending or ())
        raise ContendedError(ATTEMPTS)

    def _renew(self) -> tuple[KeyPair, bytes]:
        """Renew what is due; return the leaf that is to be served, and its CA."""
        leaf, ca = self._store.read_leaf(), self._store.read_ca()
        now = self._clock.now()
        stored = look_at(ca.pair, leaf.pair, leaf.authority)
        choose = decide if self._options.trust is TrustMode.WRITE else decide_leaf
        renewal = self._asked(choose(stored, self._names.all, now), ca.pair, leaf.pair)
        if isinstance(renewal, RenewCA):
            if not self._may_replace_ca():
                raise NeedsInstallError(f"the CA has to be replaced: {renewal.reason}")
            authority = issue_ca(now)
            self._store.write_ca(ca, authority)
            self._do(f"new CA: {renewal.reason}")
        else:
            authority = _there(ca.pair)
            if isinstance(examine(stored.ca, now), Reason):
                self._note(
                    "the CA is due, and the install job replaces it: apply the manifests again"
                )
        fresh = self._trust(leaf, authority)
        if isinstance(renewal, Keep):
            return _there(leaf.pair), authority.certificate
        if fresh:
            seconds = self._options.patience.settle_seconds
            self._say(f"giving the API servers {seconds:g} s to see the new CA")
            self._clock.sleep(seconds)
        pair = issue_leaf(authority, self._names, self._clock.now())
        self._store.write_leaf(leaf, pair, authority.certificate)
        self._do(f"new leaf: {renewal.reason}")
        return pair, authority.certificate

    def _asked(self, renewal: Renewal, ca: KeyPair | None, leaf: KeyPair | None) -> Renewal:
        if self._found is None:
            self._found = (ca, leaf)
        if self._options.force_ca and self._found[0] == ca and not isinstance(renewal, RenewCA):
            return RenewCA(Reason.ASKED)
        if self._options.force_leaf and self._found[1] == leaf and isinstance(renewal, Keep):
            return RenewLeaf(Reason.ASKED)
        return renewal

    def _may_replace_ca(self) -> bool:
        if self._options.trust is TrustMode.LATER:
            return self._injector.read().is_empty
        return self._options.trust is TrustMode.WRITE

    def _trust(self, leaf: Secret, authority: KeyPair) -> bool:
        """
        Let every hook trust the CA, and the one that signed what may still be served, or make sure
        that they do.

        Return whether the API servers may need a moment before a leaf of this CA can be served.
        """
        before = self._injector.read()
        for note in before.notes:
            self._note(note)
        served = leaf.pair.certificate if leaf.pair else b""
        serving = signers_of(served, read_bundle(leaf.authority).ours)
        if self._options.trust is not TrustMode.WRITE:
            if self._options.trust is TrustMode.CHECK or not before.is_empty:
                _all_trust(before, authority)
            return not before.is_empty and normal(authority.certificate) != serving
        changed = self._injector.trust_also(before, *serving, authority.certificate)
        if changed:
            self._do(f"CA trusted by the {len(before.hooks)} hook(s) of the webhook configuration")
        return not before.is_empty and (changed or normal(authority.certificate) != serving)

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._say(text)

    def _do(self, text: str) -> None:
        self._done.append(text)
        self._say(text)


def _all_trust(before: TrustedBundles, authority: KeyPair) -> None:
    for hook, bundle in zip(before.hooks, before.bundles, strict=True):
        if not bundle.trusts(authority.certificate):
            raise NeedsInstallError(f"{hook} of the webhook configuration does not trust the CA")


def _there(pair: KeyPair | None) -> KeyPair:
    if pair is None:
        raise AssertionError("what is kept has been read")
    return pair
