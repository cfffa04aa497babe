"""
PURE. Counting violations: each once, and in a bounded number of namespaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.decision import Decision
    from agent.model.memory import Memory

K = TypeVar("K")
Place: TypeAlias = tuple[str, str]

MOST_NAMESPACES: Final = 200
"""
Namespaces whose violations are counted apart; what comes later is counted together.
"""
OTHERS: Final = "(others)"


def one_more(counts: Mapping[K, int], key: K) -> dict[K, int]:
    return {**counts, key: counts.get(key, 0) + 1}


def violations_since(memory: Memory) -> dict[Place, float]:
    """
    Return since when which pod is over its limit on which card.
    """
    return {
        (uid, uuid): watch.report.since
        for uid, pod in memory.pods.items()
        for uuid, watch in pod.watches.items()
        if watch.report.since is not None
    }


def with_violations(
    before: Mapping[tuple[str, str], int],
    decision: Decision,
    memory: Memory,
    known: Mapping[Place, float],
) -> Mapping[tuple[str, str], int]:
    """
    Count each violation once, when it begins; `known` are those of the tick before.
    """
    counts = before
    running = violations_since(memory)
    for verdict in decision.verdicts:
        if verdict.over and verdict.card is not None:
            place = (verdict.pod.uid, verdict.card.card.uuid)
            if place in running and known.get(place) != running[place]:
                key = (verdict.pod.namespace, str(verdict.pod.mode))
                if key not in counts and len(counts) >= MOST_NAMESPACES:
                    key = (OTHERS, key[1])
                counts = one_more(counts, key)
    return counts
