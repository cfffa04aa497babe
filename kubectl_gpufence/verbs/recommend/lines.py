"""PURE. What every model needs and which limit would do, as table, JSON and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.need import Confidence
from gpufence.need.measured import LEAST_PODS, LEAST_SECONDS
from gpufence.text import duration
from kubectl_gpufence.view import (
    Cell,
    Field,
    Rows,
    Tone,
    allowed,
    amount,
    exact,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpufence.need import NeedSummary

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


def _container(item: NeedSummary) -> str:
    return item.key.container


def _card(item: NeedSummary) -> str:
    return item.key.card


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


NEED_FIELDS: Final[tuple[Field[NeedSummary], ...]] = (
    Field("namespace", lambda item: item.key.namespace, "NAMESPACE", shrinks=True),
    Field("kind", lambda item: item.key.kind),
    Field("name", lambda item: item.key.name, "OWNER", title, shrinks=True),
    Field("container", _container, "CONTAINER", _container, shrinks=True),
    Field("card", _card, "CARD", _card, shrinks=True),
    amount("limit", lambda item: item.limit_bytes, "LIMIT", allowed),
    Field("told", lambda item: exact(item.told_bytes), in_csv=False),
    amount("peak", lambda item: item.peak_bytes, "PEAK"),
    amount("target", lambda item: item.target_bytes, "TARGET", cell=_target),
    Field("confidence", lambda item: str(item.confidence), "CONFIDENCE", _confidence),
    Field("days", lambda item: item.days),
    Field("last_day", lambda item: item.last_day, in_csv=False),
    Field("pods", lambda item: item.pods),
    Field("held_seconds", lambda item: round(item.held_seconds)),
    Field("capped", lambda item: item.capped),
    Field("out_of_memory", lambda item: item.out_of_memory),
    Field("evictions", lambda item: item.evictions),
    Field("reasons", lambda item: item.reasons._asdict(), in_csv=False),
    Field(title="REMARK", cell=_remark),
)
"""What is said of a model's need."""


def need_listing(
    items: Sequence[NeedSummary], namespace: str, source: str, notes: Sequence[str]
) -> Rows[NeedSummary]:
    """Put the needs of a namespace, or of all, together with where they come from."""
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    return Rows(
        name="needs",
        fields=NEED_FIELDS,
        rows=items,
        nothing=f"nobody has measured a model {where} yet",
        notes=notes,
        without=("NAMESPACE",) if namespace else (),
        about={"source": source},
    )
