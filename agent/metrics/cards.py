"""
PURE. What is known of each card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.model.state import TickResult
    from agent.model.use import CardUse

    Read = Callable[[CardUse, TickResult], float | None]


def card_families(look: TickResult | None) -> Iterator[Family]:
    """
    Yield a family for each figure; without a look that is current they have no lines.
    """
    unidentified = None if look is None else len(look.observation.sample.unidentified)
    yield Family(
        "gpufence_cards_unidentified",
        "gauge",
        "Cards that have never said which ones they are, and are not shown.",
        (({}, unidentified),),
    )
    uses = [] if look is None else [use for _, use in sorted(look.observation.cards.items())]
    yield Family(
        "gpufence_card_info",
        "gauge",
        "Always 1: what the card is called.",
        tuple((_info(use), 1.0) for use in uses),
    )
    for name, text, read in _FIGURES:
        values = () if look is None else tuple(_line(use, read(use, look)) for use in uses)
        yield Family(f"gpufence_card_{name}", "gauge", text, values)


def _line(use: CardUse, value: float | None) -> tuple[dict[str, str], float | None]:
    return {"card": use.card.uuid}, value


def _info(use: CardUse) -> dict[str, str]:
    card = use.card
    mig = {} if card.mig is None else {"parent": card.mig.parent, "profile": card.mig.profile}
    return {"card": card.uuid, "index": str(card.index), "model": card.model, **mig}


def _is_readable(use: CardUse, _look: TickResult) -> float:
    return float(use.memory is not None and use.listed_at is not None)


def _total(use: CardUse, _look: TickResult) -> float:
    return use.card.memory_bytes if use.memory is None else use.memory.total_bytes


def _used(use: CardUse, _look: TickResult) -> float | None:
    return None if use.memory is None else use.memory.used_bytes


def _free(use: CardUse, _look: TickResult) -> float | None:
    return None if use.memory is None else use.memory.free_bytes


def _reserved(use: CardUse, _look: TickResult) -> float | None:
    return None if use.memory is None else use.memory.reserved_bytes


def _committed(use: CardUse, look: TickResult) -> float | None:
    found = look.decision.findings.get(use.card.uuid)
    return None if found is None or use.listed_at is None else found.committed_bytes


def _unattributed(use: CardUse, _look: TickResult) -> float | None:
    return use.unattributed_bytes


def _unlisted(use: CardUse, _look: TickResult) -> float | None:
    return use.unlisted_bytes


def _age(use: CardUse, look: TickResult) -> float | None:
    if use.listed_at is None:
        return None
    return round(max(look.decision.at - use.listed_at, 0.0), 3)


_FIGURES: Final[tuple[tuple[str, str, Read], ...]] = (
    ("readable", "Whether memory and processes of the card could be read.", _is_readable),
    ("memory_total_bytes", "Memory of the card.", _total),
    ("memory_used_bytes", "Memory in use, by whomever.", _used),
    ("memory_free_bytes", "Memory that can be allocated.", _free),
    ("memory_reserved_bytes", "Memory that the driver keeps for itself.", _reserved),
    (
        "memory_committed_bytes",
        "Limits of the pods that hold memory on the card, added up.",
        _committed,
    ),
    (
        "memory_unattributed_bytes",
        "Memory of processes that belong to no pod of this node.",
        _unattributed,
    ),
    (
        "memory_unlisted_bytes",
        "Memory in use that no listed process holds: the driver's own, managed or hidden.",
        _unlisted,
    ),
    (
        "list_age_seconds",
        "Age of the list of processes; renewed when use moves, and in any case now and then.",
        _age,
    ),
)
