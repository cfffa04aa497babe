"""
How the certificates stand, as a table a person can read.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certs.material import Facts, Unreadable
from certs.renewal import Keep, days_left, decide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certs.inject import Trust
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
    stored: Stored, trust: Trust, authority: bytes, wanted: frozenset[str], now: float
) -> Status:
    rows = [("WHAT", "STATE", "EXPIRES", "LEFT")]
    rows.append(_row("CA", stored.ca, now))
    rows.append(_row("leaf", stored.leaf, now))
    lines = _table(rows)
    renewal = decide(stored, wanted, now)
    if isinstance(renewal, Keep):
        lines.append(f"next renewal: {_day(renewal.until)}")
    else:
        lines.append(f"the next `ensure` renews: {renewal.reason}")
    for hook, bundle in zip(trust.hooks, trust.bundles, strict=True):
        overlap = f", {len(bundle.ours) - 1} older CA(s) still trusted" if bundle.ours[1:] else ""
        known = bool(authority) and authority.strip() in bundle.pem
        lines.append(f"{hook}: {'trusts the CA' if known else 'does NOT trust the CA'}{overlap}")
    lines += trust.notes
    trusted = bool(authority) and all(authority.strip() in item.pem for item in trust.bundles)
    alarming = not trusted or any(_alarms(item, now) for item in (stored.ca, stored.leaf))
    return Status("\n".join(lines), alarming)


def _row(what: str, found: Facts | Unreadable | None, now: float) -> tuple[str, str, str, str]:
    if found is None:
        return what, "missing", "-", "-"
    if isinstance(found, Unreadable):
        return what, f"unreadable ({found.reason})", "-", "-"
    whole = found.key_matches and found.signed and found.fit
    left = days_left(found, now)
    state = "expired" if left <= 0 else "ok" if whole else "broken"
    return what, state, _day(found.not_after), f"{left:.0f} days"


def _alarms(found: Facts | Unreadable | None, now: float) -> bool:
    if not isinstance(found, Facts):
        return True
    whole = found.key_matches and found.signed and found.fit
    return not whole or days_left(found, now) <= SOON_DAYS


def _day(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
