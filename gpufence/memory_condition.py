"""
PURE. Condition `gpufence.io/GPUMemory` of a pod, by which all who may read the pod see its use: an
agent writes it, and the plugin reads it where it may not ask the agent.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.names import GPU_MEMORY
from gpufence.quantity import MIB
from gpufence.text import limit_mebibytes, mebibytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpufence.shape import Object

MOST_CARDS: Final = 16
_MOST_READ: Final = 1024
_AMOUNTS: Final = re.compile(
    r"(?<!\d)(\d{1,9}|\?) of (\d{1,9}) MiB on (?:card (\d{1,4})|any card)"
    r"(?: \(request (\d{1,9})\))?",
    re.ASCII,
)


class MemoryReason(StrEnum):
    """How a pod stands against its limit: the reasons of its condition, from harmless to final."""

    WITHIN = "WithinLimit"
    BORROWING = "Borrowing"
    UNKNOWN = "NotMeasured"
    OVER = "OverLimit"
    CAPPED = "CapReached"
    RECALLED = "Recalled"
    EVICTED = "BeingEvicted"


STATUSES: Final = {
    MemoryReason.WITHIN: "True",
    MemoryReason.BORROWING: "True",
    MemoryReason.UNKNOWN: "Unknown",
    MemoryReason.OVER: "False",
    MemoryReason.CAPPED: "False",
    MemoryReason.RECALLED: "False",
    MemoryReason.EVICTED: "False",
}
_BEGINNINGS: Final = {
    MemoryReason.WITHIN: "holds",
    MemoryReason.BORROWING: "borrows above its request:",
    MemoryReason.UNKNOWN: "not measured:",
    MemoryReason.OVER: "over its limit:",
    MemoryReason.CAPPED: "ended at its cap:",
    MemoryReason.RECALLED: "to give back what it borrows, which another pod needs:",
    MemoryReason.EVICTED: "is being evicted:",
}


class HeldOnCard(NamedTuple):
    """
    What a pod holds, None where that is unknown, and may; `card` is None for all it may use. Its
    request is None where that is its limit.
    """

    card: int | None
    used_bytes: int | None
    limit_bytes: int
    request_bytes: int | None = None


class MemoryCondition(NamedTuple):
    """`at` is when it was written, RFC 3339; the reason may be one of a newer agent's."""

    reason: str
    cards: tuple[HeldOnCard, ...]
    at: str = ""


def write_message(reason: MemoryReason, cards: Sequence[HeldOnCard]) -> str:
    """Write the sentence of a condition: amounts held are rounded up, limits down."""
    amounts = [_amounts(item) for item in cards[:MOST_CARDS]]
    rest = [f"and on {len(cards) - MOST_CARDS} more"] if len(cards) > MOST_CARDS else []
    return f"{_BEGINNINGS[reason]} {', '.join((*amounts, *rest))}"


def read_memory_condition(conditions: Iterable[Object]) -> MemoryCondition | None:
    """Return what a pod's conditions say; None where none of them is ours."""
    for item in conditions:
        if item.get("type") == GPU_MEMORY:
            found = _AMOUNTS.finditer(str(item.get("message", ""))[:_MOST_READ])
            reason, at = str(item.get("reason", "")), str(item.get("lastProbeTime") or "")
            return MemoryCondition(reason, tuple(map(_read, found)), at)
    return None


def _amounts(item: HeldOnCard) -> str:
    where = "any card" if item.card is None else f"card {item.card}"
    used = mebibytes(item.used_bytes, unit="", unknown="?")
    request = item.request_bytes
    of_that = "" if request is None else f" (request {limit_mebibytes(request, unit='')})"
    return f"{used} of {limit_mebibytes(item.limit_bytes)} on {where}{of_that}"


def _read(found: re.Match[str]) -> HeldOnCard:
    used, limit, card, request = found.groups()
    held = None if used == "?" else int(used) * MIB
    of_that = None if request is None else int(request) * MIB
    return HeldOnCard(None if card is None else int(card), held, int(limit) * MIB, of_that)
