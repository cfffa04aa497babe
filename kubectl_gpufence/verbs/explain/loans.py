"""PURE. What a pod borrows beside its request, and what of its own others may borrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpufence.verdicts import is_recalled
from kubectl_gpufence.view import allowed, exact, held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.snapshot import Snapshot, UseRow


def loan_sentences(use: UseRow, snapshot: Snapshot) -> Iterator[str]:
    """Say what a pod borrows, and what of its own others may borrow while it is idle."""
    if use.promised_bytes is not None:
        yield f"request {allowed(use.promised_bytes)}, borrows {_amount(use.borrowed_bytes)}"
    if use.lends and any_borrows(use.card, snapshot):
        yield f"it leaves {allowed(use.owed_bytes)} that others may borrow until it works again"


def any_borrows(uuid: str, snapshot: Snapshot) -> bool:
    """Return whether any pod may borrow on a card."""
    uses = (use for pod in snapshot.pods for use in pod.uses if use.card == uuid)
    return any(use.promised_bytes is not None for use in uses)


def loan_document(use: UseRow) -> dict[str, object]:
    """Write the same for programs; nothing of a pod that may not borrow."""
    if use.promised_bytes is None:
        return {}
    amounts = {
        "request": use.promised_bytes,
        "borrowed": use.borrowed_bytes,
        "owed": use.owed_bytes,
    }
    return {name: exact(each) for name, each in amounts.items()}


def what_to_give_back(use: UseRow) -> Iterator[str]:
    """Say what is to be done of a pod that is asked for what it borrows."""
    if is_recalled(use):
        yield (
            f"Another pod needs what it borrows ({held(use.borrowed_bytes)}): let its framework "
            f"empty its caches, or request more than {allowed(use.promised_bytes)} for it."
        )


def _amount(number: int) -> str:
    return held(number or None, none="nothing")
