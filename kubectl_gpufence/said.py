"""
PURE. What pods say of their own use, in a condition that their agents write: all that there is for
people who may read a pod and not ask an agent. It is written when a tenth of the limit has moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.memory_condition import MemoryReason
from gpufence.text import printable
from kubectl_gpufence.verdicts import VERDICTS, VerdictText
from kubectl_gpufence.view import Cell, Tone, allowed, exact, held, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpufence.memory_condition import HeldOnCard, MemoryCondition
    from kubectl_gpufence.pods import SeenPod

_WORDS: Final[Mapping[str, VerdictText]] = {
    MemoryReason.WITHIN: VERDICTS["within"],
    MemoryReason.BORROWING: VERDICTS["borrowing"],
    MemoryReason.UNKNOWN: VERDICTS["unknown"],
    MemoryReason.OVER: VerdictText("over", Tone.BAD, "It is over its limit."),
    MemoryReason.CAPPED: VerdictText("capped", Tone.BAD, "A container of it ended at its cap."),
    MemoryReason.RECALLED: VERDICTS["recalled"],
    MemoryReason.EVICTED: VERDICTS["evict"],
}


class SaidUse(NamedTuple):
    """A pod on one card by its own condition."""

    condition: MemoryCondition
    on_card: HeldOnCard

    @property
    def used(self) -> str:
        known = self.on_card.used_bytes is not None
        return f"~{held(self.on_card.used_bytes)}" if known else held(None)

    @property
    def verdict(self) -> Cell:
        word = _WORDS.get(self.condition.reason)
        if self.on_card.card is None and self.condition.reason == MemoryReason.WITHIN:
            word = VERDICTS["idle"]
        return Cell(word.short, word.tone) if word else Cell(printable(self.condition.reason))

    @property
    def document(self) -> dict[str, object]:
        return {"reason": self.condition.reason, "at": self.condition.at}


def said_uses(pod: SeenPod) -> tuple[SaidUse, ...]:
    """Return what a pod says of itself on each card."""
    condition = pod.said
    return () if condition is None else tuple(SaidUse(condition, each) for each in condition.cards)


def said_sentences(condition: MemoryCondition) -> Iterator[str]:
    """Write what a condition says, with when it was written."""
    since = f", as written at {printable(condition.at)}" if condition.at else ""
    for item in condition.cards:
        where = "any card" if item.card is None else f"card {item.card}"
        share = percent(item.used_bytes, item.limit_bytes)
        yield f"{where}: about {held(item.used_bytes)} of {allowed(item.limit_bytes)} ({share})"
    yield (
        f"This is by its own condition{since}, which changes with a tenth of the limit: you may "
        "not ask its agent."
    )


def said_follows(condition: MemoryCondition) -> tuple[str, ...]:
    """Return what follows from it, as far as that is known."""
    word = _WORDS.get(condition.reason)
    return () if word is None else (word.follows,)


def said_document(condition: MemoryCondition) -> dict[str, object]:
    cards = [
        {"index": item.card, "used": exact(item.used_bytes), "limit": exact(item.limit_bytes)}
        for item in condition.cards
    ]
    return {"reason": condition.reason, "at": condition.at, "cards": cards}
