"""
PURE. When memory over a limit hurts somebody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.model.policy import Policy
    from agent.model.use import CardUse


def is_short(card: CardUse, pod_uid: str, policy: Policy) -> bool | None:
    """
    Tell whether a card is short of memory at another pod's cost: nearly nothing is free, and not
    all of it is this pod's own doing to itself. None where the card does not say.

    Processes of no pod do not count as neighbours: they may be this pod's, unrecognised.
    """
    if card.memory is None:
        return None
    if card.memory.free_bytes >= policy.short_floor_bytes:
        return False
    return any(use.counted_bytes for uid, use in card.pods.items() if uid != pod_uid)


def would_cure(card: CardUse, excess_bytes: int, policy: Policy) -> bool:
    """
    Tell whether giving an excess back would end the shortage.
    """
    free = None if card.memory is None else card.memory.free_bytes
    return free is not None and free + excess_bytes >= policy.short_floor_bytes
