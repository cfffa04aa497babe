"""
PURE. The rows of all nodes, put together by owner, with a suggested limit; as table, JSON and CSV.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.quantity import MIB
from gpufence.share import FACTOR_TENTHS, ShareTerms, allowance, reserve_bytes, smallest_limit
from gpufence.text import duration, printable
from kubectl_gpufence.table import (
    NOT_THERE,
    Cell,
    Column,
    Tone,
    allowed,
    exact,
    held,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.snapshot import OwnerRow
    from kubectl_gpufence.scene import Scene, SeenNode
    from kubectl_gpufence.table import Display

_FULL_PERCENT: Final = 97
"""A process this close to its cap and context has probably taken all it was told to."""

_STEP: Final = 64 * MIB
_HEADROOM_TENTHS: Final = 11
_CSV: Final = (
    *("namespace", "kind", "name", "nodes", "pods", "limit", "peak", "over_seconds"),
    *("processes", "injected", "evictions", "suggested", "remark"),
)


class OwnerLine(NamedTuple):
    """
    One owner on all nodes. `limit_bytes` is the largest of its latest limits: on cards of different
    sizes a share of the card differs.
    """

    namespace: str
    kind: str
    name: str
    nodes: int
    limit_bytes: int | None
    peak_bytes: int
    over_seconds: float
    processes: int
    injected: bool
    pods: int
    evictions: int
    reserve_bytes: int

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def full(self) -> bool:
        """
        Return whether the peak is what the frameworks were told to take: then it says nothing about
        what they need.
        """
        if not self.injected or self.limit_bytes is None:
            return False
        count = max(self.processes, 1)
        may = allowance(self.limit_bytes, self.limit_bytes, ShareTerms(self.reserve_bytes, count))
        return self.peak_bytes * 100 >= may.bytes * count * _FULL_PERCENT

    @property
    def suggested_bytes(self) -> int | None:
        """
        Return a limit under which the peak would fit with a tenth to spare; None without a peak.
        """
        if not self.peak_bytes:
            return None
        return suggested_limit(self.peak_bytes, self.processes, self.reserve_bytes)

    @property
    def remark(self) -> str:
        """
        Return what keeps the suggestion from being one.
        """
        doubts = (("not injected", not self.injected), ("at its cap", self.full))
        return ", ".join(text for text, applies in doubts if applies)


def suggested_limit(peak_bytes: int, processes: int, reserve_bytes: int) -> int:
    """
    Return a limit under which a peak and a tenth would fit, in steps of 64 MiB.

    A process may allocate seven tenths of its part and holds its context besides (gpufence.share):
    whatever was measured, less the contexts, must be no more than those seven tenths.
    """
    count = max(processes, 1)
    wanted = -(-peak_bytes * _HEADROOM_TENTHS // 10)
    allocated = max(wanted - count * reserve_bytes, 0)
    least = smallest_limit(ShareTerms(reserve_bytes, count))
    return -(-max(wanted, -(-allocated * 10 // FACTOR_TENTHS), least) // _STEP) * _STEP


def owner_lines(scene: Scene, namespace: str) -> list[OwnerLine]:
    """
    Return the owners of a namespace, or of all, those longest over their limits first.
    """
    rows: dict[tuple[str, str, str], list[tuple[OwnerRow, int]]] = {}
    for node, snapshot in scene.snapshots.items():
        reserve = _reserve(scene.nodes.get(node))
        for row in snapshot.owners:
            if namespace in ("", row.namespace):
                rows.setdefault((row.namespace, row.kind, row.name), []).append((row, reserve))
    lines = [_line(of_owner) for of_owner in rows.values()]
    return sorted(lines, key=lambda line: (-line.over_seconds, line.namespace, line.title))


def since(scene: Scene) -> tuple[str, str]:
    """
    Return when the first and the last of the agents started.
    """
    starts = sorted(snapshot.started for snapshot in scene.snapshots.values())
    return (starts[0], starts[-1]) if starts else ("", "")


def owners_table(lines: Sequence[OwnerLine], display: Display, *, namespaces: bool) -> list[str]:
    columns: list[Column[OwnerLine]] = [
        Column("NAMESPACE", lambda line: line.namespace, shrinks=True),
        Column("OWNER", lambda line: line.title, shrinks=True),
        Column("PODS", lambda line: str(line.pods), right=True),
        Column("LIMIT", lambda line: allowed(line.limit_bytes), right=True),
        Column("PEAK", _peak, right=True),
        Column("OVER", _over, right=True),
        Column("PROCS", lambda line: str(line.processes), right=True),
        Column("EVICTED", _evicted, right=True),
        Column("SUGGESTED", _suggested, right=True),
        Column("REMARK", lambda line: Cell(line.remark, Tone.WARN)),
    ]
    return table(columns if namespaces else columns[1:], lines, display)


def owners_csv(lines: Sequence[OwnerLine]) -> list[str]:
    """
    Write lines of CSV: names of Kubernetes objects need no quotes, remarks get them.
    """
    rows = [owner_json(line) for line in lines]
    return [",".join(_CSV), *(",".join(_field(row[key]) for key in _CSV) for row in rows)]


def owner_json(line: OwnerLine) -> dict[str, object]:
    return {
        "namespace": line.namespace,
        "kind": line.kind,
        "name": line.name,
        "nodes": line.nodes,
        "pods": line.pods,
        "limit": exact(line.limit_bytes),
        "peak": exact(line.peak_bytes),
        "over_seconds": round(line.over_seconds, 3),
        "processes": line.processes,
        "injected": line.injected,
        "evictions": line.evictions,
        "suggested": exact(line.suggested_bytes),
        "remark": line.remark,
    }


def _line(rows: list[tuple[OwnerRow, int]]) -> OwnerLine:
    first = rows[0][0]
    limits = (row.limit_bytes for row, _ in rows)
    return OwnerLine(
        namespace=first.namespace,
        kind=first.kind,
        name=first.name,
        nodes=len(rows),
        limit_bytes=max((limit for limit in limits if limit is not None), default=None),
        peak_bytes=max(row.peak_bytes for row, _ in rows),
        over_seconds=sum(row.over_seconds for row, _ in rows),
        processes=max(row.processes for row, _ in rows),
        injected=all(row.injected for row, _ in rows),
        pods=sum(row.pods for row, _ in rows),
        evictions=sum(row.evictions for row, _ in rows),
        reserve_bytes=max(reserve for _, reserve in rows),
    )


def _reserve(node: SeenNode | None) -> int:
    """
    Return what a process holds beside its allocator on the newest card of a node.
    """
    cards = () if node is None or node.gpu is None else node.gpu.cards
    return max(
        (reserve_bytes(card.compute_capability) for card in cards), default=reserve_bytes(None)
    )


def _peak(line: OwnerLine) -> Cell:
    above = line.limit_bytes is not None and line.peak_bytes > line.limit_bytes
    return Cell(held(line.peak_bytes), Tone.BAD if above else Tone.PLAIN)


def _over(line: OwnerLine) -> str:
    return duration(line.over_seconds) if line.over_seconds else NOT_THERE


def _evicted(line: OwnerLine) -> Cell:
    return Cell(str(line.evictions), Tone.BAD if line.evictions else Tone.PLAIN)


def _suggested(line: OwnerLine) -> Cell:
    return Cell(allowed(line.suggested_bytes), Tone.FAINT if line.full else Tone.PLAIN)


def _field(value: object) -> str:
    """
    Write a field, in quotes where RFC 4180 asks for them; unknown is empty.
    """
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else printable(str(value))
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(char in text for char in ',"') else text
