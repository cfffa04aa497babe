"""
PURE. What to do about the stored certificates: keep them, renew the leaf, or the CA and the leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from certs.material import DAY, BadMaterial, Facts

if TYPE_CHECKING:
    from certs.material import Stored

CLOCK_SKEW_SECONDS = 600.0
"""Certificates are issued five minutes back; more than twice that ahead means a clock is off."""


class Reason(StrEnum):
    """Why something is renewed, in words for the log and for `status`."""

    MISSING = "it is missing"
    UNREADABLE = "it cannot be read"
    KEY = "its key does not match"
    SIGNATURE = "another CA has signed it"
    UNFIT = "it is not of the kind that gpufence issues"
    INCOMPLETE = "the CA beside it is not the one that signed it"
    NAMES = "the names have changed"
    CLOCK = "it is not valid yet: a clock was or is wrong"
    DUE = "two thirds of its life are over"
    EXPIRED = "it has expired"
    ASKED = "somebody asked for it"


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing to do, until the time given."""

    until: float


@dataclass(frozen=True, slots=True)
class RenewLeaf:
    reason: Reason


@dataclass(frozen=True, slots=True)
class RenewCA:
    """
    A new CA, and with it a new leaf; the old CA stays trusted until no replica shows its leaf.
    """

    reason: Reason


Renewal = Keep | RenewLeaf | RenewCA


def decide(stored: Stored, wanted: frozenset[str], now: float) -> Renewal:
    """
    Decide what the next run has to do.

    A CA is due while a whole leaf's life of it is still left, so that no leaf outlives its CA.
    """
    ca = examine(stored.ca, now)
    return RenewCA(ca) if isinstance(ca, Reason) else _under(ca, stored, wanted, now)


def decide_leaf(stored: Stored, wanted: frozenset[str], now: float) -> Renewal:
    """Decide the same for a run that may not replace the CA: one that is merely due still signs."""
    ca = examine(stored.ca, now)
    if ca is Reason.DUE and isinstance(stored.ca, Facts):
        return _under(stored.ca, stored, wanted, now)
    return decide(stored, wanted, now)


def _under(ca: Facts, stored: Stored, wanted: frozenset[str], now: float) -> Keep | RenewLeaf:
    leaf = examine(stored.leaf, now)
    if isinstance(leaf, Reason):
        return RenewLeaf(leaf)
    if not wanted <= leaf.names:
        return RenewLeaf(Reason.NAMES)
    return Keep(until=min(due_at(ca), due_at(leaf)))


def examine(found: Facts | BadMaterial | None, now: float) -> Facts | Reason:
    """Return the facts of a pair that is well, or the first reason to renew it."""
    if found is None:
        return Reason.MISSING
    if isinstance(found, BadMaterial):
        return Reason.UNREADABLE
    checks = (
        (found.key_matches, Reason.KEY),
        (found.fit, Reason.UNFIT),
        (found.signed, Reason.SIGNATURE),
        (found.complete, Reason.INCOMPLETE),
        (found.not_before <= now + CLOCK_SKEW_SECONDS, Reason.CLOCK),
        (now < found.not_after, Reason.EXPIRED),
        (now < due_at(found), Reason.DUE),
    )
    return next((reason for holds, reason in checks if not holds), found)


def due_at(facts: Facts) -> float:
    """Return the moment from which a certificate is due: two thirds of its life."""
    return facts.not_before + (facts.not_after - facts.not_before) * 2 / 3


def days_left(facts: Facts, now: float) -> float:
    return (facts.not_after - now) / DAY
