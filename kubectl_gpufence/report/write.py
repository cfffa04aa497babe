"""
PURE. The report as a table, as JSON and as CSV.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kubectl_gpufence.table import Cell, Column, Look, Tone, table
from kubectl_gpufence.words import NOT_THERE, allowed, duration, exact, held, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_gpufence.report.owners import Owner

CAUTION: Final = (
    "SUGGESTED is the peak and a tenth, turned into a limit by the share rule. It knows nothing of "
    "what has not happened since the agents started: batches, inputs and models that come later."
)
_COLUMNS = (
    *("namespace", "kind", "name", "nodes", "pods", "limit", "peak", "over_seconds"),
    *("processes", "injected", "evictions", "suggested", "remark"),
)
_AT_CAP = "at its cap"
_UNTOLD = "not injected"


def report_table(found: Sequence[Owner], look: Look, *, namespaces: bool) -> list[str]:
    columns = [
        *([Column("NAMESPACE", shrinks=True)] if namespaces else []),
        Column("OWNER", shrinks=True),
        Column("PODS", right=True),
        Column("LIMIT", right=True),
        Column("PEAK", right=True),
        Column("OVER", right=True),
        Column("PROCS", right=True),
        Column("EVICTED", right=True),
        Column("SUGGESTED", right=True),
        Column("REMARK"),
    ]
    return table(columns, (_cells(item, namespaces) for item in found), look)


def report_json(found: Sequence[Owner]) -> list[dict[str, object]]:
    return [_object(item) for item in found]


def report_csv(found: Sequence[Owner]) -> list[str]:
    """
    Write lines of CSV: names of Kubernetes objects need no quotes, remarks get them.
    """
    rows = [_object(item) for item in found]
    return [",".join(_COLUMNS), *(",".join(_quoted(row[key]) for key in _COLUMNS) for row in rows)]


def remark(owner: Owner) -> str:
    """
    Say what keeps the suggestion from being one.
    """
    found = [] if owner.injected else [_UNTOLD]
    if owner.full:
        found.append(_AT_CAP)
    return ", ".join(found)


def _cells(item: Owner, namespaces: bool) -> list[Cell]:  # noqa: FBT001 (the table's own switch)
    above = item.limit_bytes is not None and item.peak_bytes > item.limit_bytes
    return [
        *([Cell(safe(item.namespace))] if namespaces else []),
        Cell(safe(item.title)),
        Cell(str(item.pods)),
        Cell(allowed(item.limit_bytes)),
        Cell(held(item.peak_bytes), Tone.BAD if above else Tone.PLAIN),
        Cell(duration(item.over_seconds) if item.over_seconds else NOT_THERE),
        Cell(str(item.processes)),
        Cell(str(item.evictions), Tone.BAD if item.evictions else Tone.PLAIN),
        Cell(allowed(item.suggested_bytes), Tone.FAINT if item.full else Tone.PLAIN),
        Cell(remark(item), Tone.WARN),
    ]


def _object(item: Owner) -> dict[str, object]:
    return {
        "namespace": item.namespace,
        "kind": item.kind,
        "name": item.name,
        "nodes": item.nodes,
        "pods": item.pods,
        "limit": exact(item.limit_bytes),
        "peak": exact(item.peak_bytes),
        "over_seconds": round(item.over_seconds, 3),
        "processes": item.processes,
        "injected": item.injected,
        "evictions": item.evictions,
        "suggested": exact(item.suggested_bytes),
        "remark": remark(item),
    }


def _quoted(value: object) -> str:
    """
    Write a field, in quotes where RFC 4180 asks for them; unknown is empty.
    """
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else safe(str(value))
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(char in text for char in ',"') else text
