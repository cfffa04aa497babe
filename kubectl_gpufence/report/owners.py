"""
PURE. The rows of all nodes, put together by owner, with a suggested limit; as table, JSON and CSV.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.need.measured import FULL_PERCENT
from gpufence.need.target import MostHeld, limit_for
from gpufence.share import ShareTerms, allowance, reserve_bytes
from gpufence.text import duration
from kubectl_gpufence.table import (
    NOT_THERE,
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
    from collections.abc import Sequence

    from gpufence.snapshot import OwnerRow
    from kubectl_gpufence.scene import Scene, SeenNode
    from kubectl_gpufence.table import Display

_CSV: Final = (
    *("namespace", "kind", "name", "nodes", "pods", "limit", "peak", "over_seconds"),
    *("processes", "injected", "evictions", "suggested", "remark"),
)


class OwnerLine(NamedTuple):
    """
    One owner on all nodes, its rows summed up in one. The limit is the largest of its latest ones:
    on cards of different sizes a share of the card differs.
    """

    row: OwnerRow
    nodes: int
    reserve_bytes: int

    @property
    def title(self) -> str:
        return f"{self.row.kind}/{self.row.name}"

    @property
    def full(self) -> bool:
        """
        Return whether the peak is what the frameworks were told to take: then it says nothing about
        what they need. Who broke his limit took what he needs.
        """
        limit = self.row.limit_bytes
        if not self.row.injected or limit is None or self.row.peak_bytes > limit:
            return False
        count = max(self.row.processes, 1)
        may = allowance(limit, limit, ShareTerms(self.reserve_bytes, count))
        return self.row.peak_bytes * 100 >= may.bytes * count * FULL_PERCENT

    @property
    def suggested_bytes(self) -> int | None:
        """Return a limit under which the peak and a margin would fit; None without a peak."""
        if not self.row.peak_bytes:
            return None
        return suggested_limit(self.row.peak_bytes, self.row.processes, self.reserve_bytes)

    @property
    def remark(self) -> str:
        """Return what keeps the suggestion from being one."""
        doubts = (("not injected", not self.row.injected), ("at its cap", self.full))
        return ", ".join(text for text, applies in doubts if applies)


def suggested_limit(peak_bytes: int, processes: int, reserve_bytes: int) -> int:
    """Return the limit for a peak where nobody knows how it was spread over its processes."""
    return limit_for(MostHeld(peak_bytes, processes, shares=processes), reserve_bytes)


def owner_lines(scene: Scene, namespace: str) -> list[OwnerLine]:
    """Return the owners of a namespace, or of all, those longest over their limits first."""
    rows: dict[tuple[str, str, str], list[OwnerRow]] = {}
    reserves: dict[tuple[str, str, str], int] = {}
    for node, snapshot in scene.snapshots.items():
        reserve = _reserve(scene.nodes.get(node))
        for row in snapshot.owners:
            if namespace in ("", row.namespace):
                owner = row.namespace, row.kind, row.name
                rows.setdefault(owner, []).append(row)
                reserves[owner] = max(reserve, reserves.get(owner, 0))
    lines = [_line(of_owner, reserves[owner]) for owner, of_owner in rows.items()]
    return sorted(lines, key=lambda line: (-line.row.over_seconds, line.row.namespace, line.title))


def since(scene: Scene) -> tuple[str, str]:
    """Return when the first and the last of the agents started."""
    starts = sorted(snapshot.started for snapshot in scene.snapshots.values())
    return (starts[0], starts[-1]) if starts else ("", "")


def owners_table(lines: Sequence[OwnerLine], display: Display, *, namespaces: bool) -> list[str]:
    columns: list[Column[OwnerLine]] = [
        Column("NAMESPACE", lambda line: line.row.namespace, shrinks=True),
        Column("OWNER", lambda line: line.title, shrinks=True),
        Column("PODS", lambda line: str(line.row.pods), right=True),
        Column("LIMIT", lambda line: allowed(line.row.limit_bytes), right=True),
        Column("PEAK", _peak, right=True),
        Column("OVER", _over, right=True),
        Column("PROCS", lambda line: str(line.row.processes), right=True),
        Column("EVICTED", _evicted, right=True),
        Column("SUGGESTED", _suggested, right=True),
        Column("REMARK", lambda line: Cell(line.remark, Tone.WARN)),
    ]
    return table(columns if namespaces else columns[1:], lines, display)


def owners_csv(lines: Sequence[OwnerLine]) -> list[str]:
    """Write lines of CSV: names of Kubernetes objects need no quotes, remarks get them."""
    rows = [owner_json(line) for line in lines]
    return [",".join(_CSV), *(csv_line(row[key] for key in _CSV) for row in rows)]


def owner_json(line: OwnerLine) -> dict[str, object]:
    return {
        "namespace": line.row.namespace,
        "kind": line.row.kind,
        "name": line.row.name,
        "nodes": line.nodes,
        "pods": line.row.pods,
        "limit": exact(line.row.limit_bytes),
        "peak": exact(line.row.peak_bytes),
        "over_seconds": round(line.row.over_seconds, 3),
        "processes": line.row.processes,
        "injected": line.row.injected,
        "evictions": line.row.evictions,
        "suggested": exact(line.suggested_bytes),
        "remark": line.remark,
    }


def _line(rows: list[OwnerRow], reserve_bytes: int) -> OwnerLine:
    limits = (row.limit_bytes for row in rows if row.limit_bytes is not None)
    row = rows[0]._replace(
        limit_bytes=max(limits, default=None),
        peak_bytes=max(row.peak_bytes for row in rows),
        over_seconds=sum(row.over_seconds for row in rows),
        processes=max(row.processes for row in rows),
        injected=all(row.injected for row in rows),
        pods=sum(row.pods for row in rows),
        evictions=sum(row.evictions for row in rows),
    )
    return OwnerLine(row, len(rows), reserve_bytes)


def _reserve(node: SeenNode | None) -> int:
    """Return what a process holds beside its allocator on the newest card of a node."""
    cards = () if node is None or node.gpu is None else node.gpu.cards
    return max(
        (reserve_bytes(card.compute_capability) for card in cards), default=reserve_bytes(None)
    )


def _peak(line: OwnerLine) -> Cell:
    above = line.row.limit_bytes is not None and line.row.peak_bytes > line.row.limit_bytes
    return Cell(held(line.row.peak_bytes), Tone.BAD if above else Tone.PLAIN)


def _over(line: OwnerLine) -> str:
    return duration(line.row.over_seconds) if line.row.over_seconds else NOT_THERE


def _evicted(line: OwnerLine) -> Cell:
    return Cell(str(line.row.evictions), Tone.BAD if line.row.evictions else Tone.PLAIN)


def _suggested(line: OwnerLine) -> Cell:
    return Cell(allowed(line.suggested_bytes), Tone.FAINT if line.full else Tone.PLAIN)
