"""Reads a pod built by a test as the dialects see it."""

from typing import Any

from gpufence.dialects import Declared, Undeclared, Units, Unreadable, read_declaration
from gpufence.pods import read_pod


def said(raw: dict[str, Any], units: Units | None = None) -> Declared | Undeclared | Unreadable:
    return read_declaration(read_pod(raw), units or Units())


def declared(raw: dict[str, Any], units: Units | None = None) -> Declared:
    """Return what the pod declares, failing where it declares nothing readable."""
    found = said(raw, units)
    assert isinstance(found, Declared), found
    return found


def unreadable(raw: dict[str, Any], units: Units | None = None) -> Unreadable:
    """Return why the pod cannot be read, failing where it can."""
    found = said(raw, units)
    assert isinstance(found, Unreadable), found
    return found


def amounts(found: Declared) -> dict[str, tuple[int | None, int]]:
    """Return bytes on a T4 and the number of cards, by container."""
    return {
        claim.container: (claim.amount.on_card(15360 * 2**20), claim.cards)
        for claim in found.claims
    }
