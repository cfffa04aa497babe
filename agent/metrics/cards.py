"""
PURE. What is known of each card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.loop.moment import Look
    from agent.model.decision import CardFinding
    from agent.model.use import CardUse

Labels = dict[str, str]


def card_families(look: Look | None) -> Iterator[Family]:
    """
    Yield a family for each figure; without a look that is current they have no lines.
    """
    uses = {} if look is None else look.use.cards
    findings = {} if look is None else look.decision.findings

    def family(name: str, text: str, read: Callable[[CardUse], float | None]) -> Family:
        values = tuple(({"card": uuid}, read(use)) for uuid, use in sorted(uses.items()))
        return Family(f"gpufence_card_{name}", "gauge", text, values)

    unidentified = None if look is None else len(look.sample.unidentified)
    yield Family(
        "gpufence_cards_unidentified",
        "gauge",
        "Cards that have never said which ones they are, and are not shown.",
        (({}, unidentified),),
    )
    yield Family(
        "gpufence_card_info",
        "gauge",
        "Always 1: what the card is called.",
        tuple((_info(use), 1.0) for _, use in sorted(uses.items())),
    )
    yield family(
        "readable", "Whether memory and processes of the card could be read.", _is_readable
    )
    yield family("memory_total_bytes", "Memory of the card.", _total)
    yield family(
        "memory_used_bytes",
        "Memory in use, by whomever.",
        lambda use: None if use.memory is None else use.memory.used_bytes,
    )
    yield family(
        "memory_free_bytes",
        "Memory that can be allocated.",
        lambda use: None if use.memory is None else use.memory.free_bytes,
    )
    yield family(
        "memory_reserved_bytes",
        "Memory that the driver keeps for itself.",
        lambda use: None if use.memory is None else use.memory.reserved_bytes,
    )
    yield family(
        "memory_committed_bytes",
        "Limits of the pods that hold memory on the card, added up.",
        lambda use: _committed(findings.get(use.card.uuid), use),
    )
    yield family(
        "memory_unattributed_bytes",
        "Memory of processes that belong to no pod of this node.",
        lambda use: use.unattributed_bytes,
    )
    yield family(
        "memory_unlisted_bytes",
        "Memory in use that no listed process holds: the driver's own, managed or hidden.",
        lambda use: use.unlisted_bytes,
    )
    yield family(
        "list_age_seconds",
        "Age of the list of processes; renewed when use moves, and in any case now and then.",
        lambda use: _age(use, look),
    )


def _info(use: CardUse) -> Labels:
    card = use.card
    mig = {} if card.mig is None else {"parent": card.mig.parent, "profile": card.mig.profile}
    return {"card": card.uuid, "index": str(card.index), "model": card.model, **mig}


def _is_readable(use: CardUse) -> float:
    return float(use.memory is not None and use.listed_at is not None)


def _total(use: CardUse) -> float:
    return use.card.memory_bytes if use.memory is None else use.memory.total_bytes


def _committed(found: CardFinding | None, use: CardUse) -> float | None:
    return None if found is None or use.listed_at is None else found.committed_bytes


def _age(use: CardUse, look: Look | None) -> float | None:
    if look is None or use.listed_at is None:
        return None
    return round(max(look.decision.at - use.listed_at, 0.0), 3)
