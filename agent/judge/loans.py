"""
PURE. Memory that pods borrow above their requests: which pods lend it, and which give it back.

What is reserved for an idle pod and not used may be lent. One that is busy, unknown or has grown a
moment ago lends nothing: where less is free than such pods may need, or hardly anything, borrowers
are asked to give back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.model.memory import Lender
from gpufence.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from agent.model.memory import Memory
    from agent.model.policy import EvictionPolicy
    from agent.model.use import Observation, PodOnCard, UseKey

GROWN_BYTES: Final = 64 * MIB
"""A pod whose use rises by as much is at work, whatever else is known of it."""


def lenders_of(observation: Observation, memory: Memory, now: float) -> dict[UseKey, Lender]:
    """Remember of each pod with a promise the least it held since it grew, and when that was."""
    found: dict[UseKey, Lender] = {}
    for uuid, card in observation.cards.items():
        for uid, use in card.pods.items():
            past = memory.lenders.get((uid, uuid))
            if use.used_bytes is None:
                if past is not None:
                    found[uid, uuid] = past
            elif use.pod.promise_on(uuid) is not None:
                seen = memory.pods.get(uid)
                begins = uuid in memory.listed and (seen is None or seen.first_seen_at is None)
                before = past or Lender(0 if begins else use.used_bytes)
                found[uid, uuid] = _grown(before, use.used_bytes, now)
    return found


def _grown(past: Lender, used: int, now: float) -> Lender:
    if used >= past.least_bytes + GROWN_BYTES:
        return Lender(used, now)
    return Lender(used, past.grown_at) if used < past.least_bytes else past


def lending_of(
    observation: Observation,
    lenders: Mapping[UseKey, Lender],
    memory: Memory,
    policy: EvictionPolicy,
    now: float,
) -> frozenset[str]:
    """
    Return the pods that lend: those idle for long enough, none where no pod may borrow.

    An agent that has just started knows of no pod that it is idle for long; it takes what has been
    so for as long as it looks, or each upgrade would evict all borrowers.
    """
    if not policy.lend_after_seconds or not lenders:
        return frozenset()
    looked = max(now - memory.started_at - policy.start_pause_seconds, 0.0)
    enough = min(policy.lend_after_seconds, looked)
    grown = {
        uid
        for (uid, _), item in lenders.items()
        if item.grown_at is not None and now - item.grown_at < policy.lend_after_seconds
    }
    idle = observation.idle.items()
    return frozenset(uid for uid, seconds in idle if seconds and seconds >= enough) - grown


def recalled_of(
    able: Iterable[PodOnCard], going: Container[str], missed: int, coming: int
) -> list[str]:
    """
    Return whose eviction gives back what is missed of loans: the largest first, no more than
    needed, and none where all of them hold less than half of it.
    """
    asked = [use for use in able if use.recalled and use.pod.uid not in going]
    asked.sort(key=lambda use: (-use.borrowed_bytes, use.pod.uid))
    together = sum(use.borrowed_bytes for use in asked)
    if together < missed and 2 * together < missed - coming:
        return []
    chosen: list[str] = []
    for use in asked:
        if missed <= 0:
            break
        chosen.append(use.pod.uid)
        missed -= use.borrowed_bytes
    return chosen
