"""
PURE. What the agent has counted since its start; every set of keys is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from gpufence.exposition import Distribution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.decision import Decision
    from agent.model.memory import Memory

K = TypeVar("K")
Place: TypeAlias = tuple[str, str]

TICK_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
MOST_NAMESPACES: Final = 200
"""
Namespaces whose violations are counted apart; what comes later is counted together.
"""
OTHERS: Final = "(others)"


@dataclass(frozen=True, slots=True)
class Counts:
    """
    `evictions` are by action and answer, `violations` by namespace and mode. `muted` are Events
    that were not written since there were too many.
    """

    ticks: Distribution = field(default_factory=lambda: Distribution(TICK_BOUNDS))
    skipped: int = 0
    failed: int = 0
    muted: int = 0
    evictions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    violations: Mapping[tuple[str, str], int] = field(default_factory=dict)


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
