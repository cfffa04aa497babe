"""
PURE. Which cards shall take no more resource claims: those on which memory belongs to nobody, or
is promised twice, for long enough, until they have been in order for longer.

Nothing is decided of a card before that time is over, and of one that cannot be read nothing
changes: what stands there stays.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.model.taint import Disorder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.decision import CardFinding
    from agent.model.taint import TaintPolicy


class CardOrder(NamedTuple):
    """
    What a card has shown without a break since a moment; `taint` is what was decided, None where
    nothing was.
    """

    seen: Disorder
    since: float
    taint: Disorder | None = None


NO_ORDER: Final[Mapping[str, CardOrder]] = MappingProxyType({})


def orders(
    before: Mapping[str, CardOrder],
    findings: Mapping[str, CardFinding],
    policy: TaintPolicy,
    now: float,
) -> Mapping[str, CardOrder]:
    """Look at every card once more; those that are gone are forgotten."""
    found: dict[str, CardOrder] = {}
    for uuid, finding in findings.items():
        past = before.get(uuid)
        seen = _seen(finding)
        if seen is None:
            if past is not None:
                found[uuid] = past._replace(since=now)
            continue
        if past is None or past.seen is not seen:
            past = CardOrder(seen, now, None if past is None else past.taint)
        long_enough = policy.untaint_seconds if seen is Disorder.NONE else policy.taint_seconds
        found[uuid] = past._replace(taint=seen) if now - past.since >= long_enough else past
    return found


def decided(found: Mapping[str, CardOrder]) -> dict[str, Disorder]:
    """Return what was decided, by the cards' UUIDs."""
    return {uuid: item.taint for uuid, item in found.items() if item.taint is not None}


def _seen(finding: CardFinding) -> Disorder | None:
    """Return what is wrong with a card; None where that cannot be known."""
    if finding.card.memory is None or finding.card.listed_at is None:
        return None
    if finding.unattributed_bytes is not None:
        return Disorder.UNATTRIBUTED
    return Disorder.OVERCOMMITTED if finding.overcommitted else Disorder.NONE
