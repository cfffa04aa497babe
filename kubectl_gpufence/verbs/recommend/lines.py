"""PURE. What every model needs and which limit would do, as table, JSON and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.need import Confidence
from gpufence.need.measured import LEAST_PODS, LEAST_SECONDS
from gpufence.text import duration
from kubectl_gpufence.table import (
    Cell,
    Column,
    Tone,
    allowed,
    csv_line,
    exact,
    held,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpufence.need import NeedSummary
    from kubectl_gpufence.table import Display

_CSV: Final = (
    *("namespace", "kind", "name", "container", "card", "limit", "peak", "target", "confidence"),
    *("days", "pods", "held_seconds", "capped", "out_of_memory", "evictions"),
)
_TONES: Final = {
    Confidence.LOW: Tone.FAINT,
    Confidence.MEDIUM: Tone.PLAIN,
    Confidence.HIGH: Tone.GOOD,
}


def chosen(summaries: Iterable[NeedSummary], namespace: str) -> list[NeedSummary]:
    """Return those of a namespace, or of all, in the order of their names."""
    kept = (item for item in summaries if namespace in ("", item.key.namespace))
    return sorted(kept, key=lambda item: item.key)


def title(item: NeedSummary) -> str:
    return f"{item.key.kind}/{item.key.name}"


def unsure(items: Iterable[NeedSummary]) -> tuple[str, ...]:
    """Say why some have no target yet, where they are measured too little."""
    if all(item.confidence is not Confidence.LOW for item in items):
        return ()
    takes = f"{duration(LEAST_SECONDS)} of memory held, by {LEAST_PODS} pods"
    return (f"no target at low confidence: it takes {takes}; a PEAK is no limit to set",)


def needs_table(items: Sequence[NeedSummary], display: Display, *, namespaces: bool) -> list[str]:
    columns: list[Column[NeedSummary]] = [
        Column("NAMESPACE", lambda item: item.key.namespace, shrinks=True),
        Column("OWNER", title, shrinks=True),
        Column("CONTAINER", lambda item: item.key.container, shrinks=True),
        Column("CARD", lambda item: item.key.card, shrinks=True),
        Column("LIMIT", lambda item: allowed(item.limit_bytes), right=True),
        Column("PEAK", lambda item: held(item.peak_bytes), right=True),
        Column("TARGET", _target, right=True),
        Column("CONFIDENCE", _confidence),
        Column("REMARK", _remark),
    ]
    return table(columns if namespaces else columns[1:], items, display)


def need_json(item: NeedSummary) -> dict[str, object]:
    return {
        **item.key._asdict(),
        "limit": exact(item.limit_bytes),
        "told": exact(item.told_bytes),
        "peak": exact(item.peak_bytes),
        "target": exact(item.target_bytes),
        "confidence": str(item.confidence),
        "days": item.days,
        "last_day": item.last_day,
        "pods": item.pods,
        "held_seconds": round(item.held_seconds),
        "capped": item.capped,
        "out_of_memory": item.out_of_memory,
        "evictions": item.evictions,
        "reasons": item.reasons._asdict(),
    }


def needs_csv(items: Sequence[NeedSummary]) -> list[str]:
    rows = [need_json(item) for item in items]
    return [",".join(_CSV), *(csv_line(row[key] for key in _CSV) for row in rows)]


def _target(item: NeedSummary) -> Cell:
    larger = item.limit_bytes is not None and (item.target_bytes or 0) > item.limit_bytes
    return Cell(allowed(item.target_bytes), Tone.BAD if larger else Tone.STRONG)


def _confidence(item: NeedSummary) -> Cell:
    return Cell(str(item.confidence), _TONES[item.confidence])


def _remark(item: NeedSummary) -> Cell:
    """Return what somebody should know before he follows."""
    remarks = (
        ("at its cap", item.capped),
        (f"OOM {item.out_of_memory}d", item.out_of_memory),
        (f"evicted {item.evictions}x", item.evictions),
        (f"seen for {duration(item.held_seconds)}", item.confidence is Confidence.LOW),
    )
    return Cell(", ".join(text for text, applies in remarks if applies), Tone.WARN)
