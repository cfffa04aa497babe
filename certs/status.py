"""How the certificates stand, as a table a person can read."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certs.material import BadMaterial, Facts
from certs.renewal import Keep, Reason, days_left, decide, examine
from gpufence.text import aligned

if TYPE_CHECKING:
    from certs.bundle import TrustedBundles
    from certs.material import Stored

SOON_DAYS = 14


@dataclass(frozen=True, slots=True)
class Status:
    """
    The table, and whether somebody should look: something expires soon, is broken or untrusted.
    """

    table: str
    alarming: bool


def status_of(
    stored: Stored, trust: TrustedBundles, authority: bytes, wanted: frozenset[str], now: float
) -> Status:
    """
    Judge what is stored and what the API server trusts at a moment.

    A leaf that is merely due alarms nobody: the next run renews it.
    """
    rows = [("WHAT", "STATE", "EXPIRES", "LEFT")]
    rows.append(_row("CA", stored.ca, now))
    rows.append(_row("leaf", stored.leaf, now))
    trusted = [bundle.trusts(authority) for bundle in trust.bundles]
    for hook, bundle, known in zip(trust.hooks, trust.bundles, trusted, strict=True):
        older = len(bundle.ours) - known
        also = f" (and {older} older)" if older else ""
        rows.append((hook, f"trusts the CA{also}" if known else "does NOT trust the CA", "-", "-"))
    renewal = decide(stored, wanted, now)
    if isinstance(renewal, Keep):
        due, broken = f"next renewal due: {_day(renewal.until)}", False
    else:
        due, broken = f"the next `ensure` renews: {renewal.reason}", renewal.reason != Reason.DUE
    soon = any(
        isinstance(item, Facts) and days_left(item, now) <= SOON_DAYS
        for item in (stored.ca, stored.leaf)
    )
    table = "\n".join([*aligned(rows), due, *trust.notes])
    return Status(table, alarming=broken or soon or not all(trusted))


def _row(what: str, found: Facts | BadMaterial | None, now: float) -> tuple[str, str, str, str]:
    if found is None:
        return what, "missing", "-", "-"
    if isinstance(found, BadMaterial):
        return what, f"unreadable: {found.reason}", "-", "-"
    examined = examine(found, now)
    state = str(examined) if isinstance(examined, Reason) else "ok"
    return what, state, _day(found.not_after), f"{days_left(found, now):.0f} days"


def _day(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
