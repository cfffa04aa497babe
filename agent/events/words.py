"""
PURE. The parts of a sentence: amounts, times, cards, containers and processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.model.decision import Verdict
    from gpufence.cards import Card

MOST_NAMED: Final = 4
MOST_QUOTED: Final = 240


def listed(names: Sequence[str]) -> str:
    """
    Name a few and count the rest.
    """
    shown = ", ".join(names[:MOST_NAMED])
    rest = len(names) - MOST_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown


def clipped(text: str) -> str:
    """
    Shorten what others have written, so that the remedy after it still fits.
    """
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."


def card_words(card: Card) -> str:
    return f"card {card.index} ({card.uuid})"


def where(verdict: Verdict) -> str:
    return "an unknown card" if verdict.card is None else card_words(verdict.card.card)


def holds(verdict: Verdict) -> str:
    """
    Begin a sentence with the containers that hold memory, the largest first.
    """
    held = {} if verdict.use is None else verdict.use.containers or {}
    names = sorted(held, key=lambda name: (-held[name], name))
    if not names:
        return "the pod holds"
    if len(names) == 1:
        return f"container {names[0]} holds"
    return f"containers {listed(names)} hold"


def processes(verdict: Verdict) -> str:
    """
    Count the processes and name the largest by PID.
    """
    found = () if verdict.use is None else verdict.use.processes
    by_size = sorted(found, key=lambda item: (-(item.used_bytes or 0), item.pid))
    pids = listed([str(item.pid) for item in by_size])
    return f"{len(found)} process{'' if len(found) == 1 else 'es'} (PID {pids})"
