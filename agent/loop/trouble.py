"""
PURE. For how long which card could not be read, and when that is worth saying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.events.sentences import card_unavailable, cards_unidentified, nvml_unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.events import Notice
    from agent.model.sample import Sample

ALL: Final = ""
UNIDENTIFIED: Final = "?"
NO_TROUBLES: Final[Mapping[str, float]] = {}


def troubled(
    before: Mapping[str, float], sample: Sample, now: float, node: str, patience_seconds: float
) -> tuple[dict[str, float], tuple[Notice, ...]]:
    """
    Return since when what cannot be read, by UUID or for all cards as one, and what to say of it.

    One trouble of all cards is said once, not once for each card.
    """
    reasons = {ALL: sample.trouble.text} if sample.trouble else _of_cards(sample)
    if sample.unidentified and not sample.trouble:
        reasons[UNIDENTIFIED] = "; ".join(map(str, sample.unidentified))
    since = {uuid: before.get(uuid, now) for uuid in reasons}
    cards = {item.card.uuid: item.card for item in sample.cards}
    found = []
    for uuid, began in since.items():
        seconds = now - began
        if seconds < patience_seconds:
            continue
        if uuid in cards:
            found.append(card_unavailable(node, cards[uuid], reasons[uuid], seconds))
        elif uuid == ALL:
            found.append(nvml_unavailable(node, reasons[uuid], seconds))
        else:
            found.append(cards_unidentified(node, reasons[uuid], seconds))
    return since, tuple(found)


def _of_cards(sample: Sample) -> dict[str, str]:
    return {
        item.card.uuid: item.trouble.text or "it does not say how much memory is used"
        for item in sample.cards
        if item.memory is None or item.processes is None
    }
