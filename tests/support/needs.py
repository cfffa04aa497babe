"""What is known of models' needs, as values with defaults."""

from typing import Any

from gpufence.need import (
    CardNeed,
    Confidence,
    NeedDay,
    NeedKey,
    NeedReasons,
    NeedSummary,
    NodeNeed,
    OwnerNeed,
)
from gpufence.quantity import GIB, MIB

T4 = CardNeed("Tesla T4", 15_360 * MIB, 512 * MIB)
NEED_KEY = NeedKey("vision", "Deployment", "classifier", "server", T4.model)


def need_summary(**changes: Any) -> NeedSummary:
    """Build a need of 4 GiB that can be trusted."""
    return NeedSummary(
        key=NEED_KEY,
        peak_bytes=4 * GIB,
        target_bytes=6 * GIB,
        confidence=Confidence.HIGH,
        days=9,
        pods=4,
        held_seconds=9 * 86_400.0,
        limit_bytes=8 * GIB,
        told_bytes=5 * GIB,
        capped=False,
        out_of_memory=0,
        evictions=0,
        reasons=NeedReasons("it held that", "the peak and 15 %", "9 days, 4 pods"),
    )._replace(**changes)


def need_day(number: int, **changes: Any) -> NeedDay:
    """Build a full day of three pods, one of them new, that held 4 GiB under a limit of 8."""
    return NeedDay(
        day=f"2026-11-{number:02}",
        peak_bytes=4 * GIB,
        pods=3,
        held_seconds=86_400.0,
        told_bytes=5 * GIB,
        limit_bytes=8 * GIB,
        process_bytes=4 * GIB,
        started=1,
    )._replace(**changes)


def node_need(*owners: OwnerNeed, node: str = "gpu-1") -> NodeNeed:
    return NodeNeed(node, owners, (T4,))


def owner_need(days: int = 9, key: NeedKey = NEED_KEY, **changes: Any) -> OwnerNeed:
    """Build as many days of one key."""
    return OwnerNeed(key, tuple(need_day(number, **changes) for number in range(1, days + 1)))
