"""
PURE. Whether a decision gives cause to say anything that the one before did not.

Most ticks repeat the one before, and sentences cost more than the judging: they are made when what
they say changes, and otherwise often enough for the damping to see that it lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.events import notices

if TYPE_CHECKING:
    from agent.events import Notice
    from agent.model.decision import Decision

REPEAT_SECONDS: Final = 10.0
"""
Far less than an episode of the damping lasts without cause.
"""


@dataclass(frozen=True, slots=True)
class Told:
    """
    What was said last, in short, and when.
    """

    short: frozenset[object] = frozenset()
    at: float | None = None


NOTHING_TOLD = Told()


def news(told: Told, decision: Decision, node: str) -> tuple[Told, tuple[Notice, ...]]:
    short = _short(decision)
    recent = told.at is not None and decision.at - told.at < REPEAT_SECONDS
    if recent and short == told.short:
        return told, ()
    return Told(short, decision.at), notices(decision, node)


def _short(decision: Decision) -> frozenset[object]:
    """
    Name all causes, without the figures that change from look to look.
    """
    verdicts = (
        (
            item.pod.uid,
            "" if item.card is None else item.card.card.uuid,
            item.outcome,
            item.over,
            tuple(excess.container for excess in item.containers_over),
            tuple(found.container for found in item.ineffective),
        )
        for item in decision.verdicts
    )
    cards = (
        (uuid, found.overcommitted, found.unattributed_bytes is not None)
        for uuid, found in decision.findings.items()
    )
    return frozenset((*verdicts, *cards, decision.brake))
