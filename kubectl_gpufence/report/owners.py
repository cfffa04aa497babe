"""
PURE. The rows of all nodes, put together by owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpufence.share import ShareTerms, allowance, reserve_bytes
from kubectl_gpufence.suggest import suggested_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpufence.snapshot import OwnerRow
    from kubectl_gpufence.scene import Scene, SeenNode

_FULL_PERCENT: Final = 97
"""A process this close to its cap and context has probably taken all it was told to."""


@dataclass(frozen=True, slots=True)
class Owner:
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
        Tell whether the peak is what the frameworks were told to take: then it says nothing about
        what they need.
        """
        if not self.injected or self.limit_bytes is None:
            return False
        count = max(self.processes, 1)
        told = allowance(self.limit_bytes, self.limit_bytes, ShareTerms(self.reserve_bytes, count))
        return self.peak_bytes * 100 >= told.bytes * count * _FULL_PERCENT

    @property
    def suggested_bytes(self) -> int | None:
        """
        Return a limit under which the peak would fit with a tenth to spare; None without a peak.
        """
        if not self.peak_bytes:
            return None
        return suggested_limit(self.peak_bytes, self.processes, self.reserve_bytes)


def owners(scene: Scene, namespace: str) -> list[Owner]:
    """
    Return the owners of a namespace, or of all, those longest over their limits first.
    """
    found: dict[tuple[str, str, str], list[tuple[OwnerRow, int]]] = {}
    for node, snapshot in scene.answering.items():
        reserve = _reserve(scene.nodes.get(node))
        for row in snapshot.owners:
            if namespace in ("", row.namespace):
                found.setdefault((row.namespace, row.kind, row.name), []).append((row, reserve))
    together = [_owner(rows) for rows in found.values()]
    return sorted(together, key=lambda item: (-item.over_seconds, item.namespace, item.title))


def since(scene: Scene) -> tuple[str, str]:
    """
    Return when the first and the last of the agents started.
    """
    starts = sorted(snapshot.started for snapshot in scene.answering.values())
    return (starts[0], starts[-1]) if starts else ("", "")


def _owner(rows: list[tuple[OwnerRow, int]]) -> Owner:
    first = rows[0][0]
    return Owner(
        namespace=first.namespace,
        kind=first.kind,
        name=first.name,
        nodes=len(rows),
        limit_bytes=_largest(row.limit_bytes for row, _ in rows),
        peak_bytes=max(row.peak_bytes for row, _ in rows),
        over_seconds=sum(row.over_seconds for row, _ in rows),
        processes=max(row.processes for row, _ in rows),
        injected=all(row.injected for row, _ in rows),
        pods=sum(row.pods for row, _ in rows),
        evictions=sum(row.evictions for row, _ in rows),
        reserve_bytes=max(reserve for _, reserve in rows),
    )


def _largest(amounts: Iterable[int | None]) -> int | None:
    return max((amount for amount in amounts if amount is not None), default=None)


def _reserve(node: SeenNode | None) -> int:
    """
    Return what a process holds beside its allocator on the newest card of a node.
    """
    cards = () if node is None or node.gpu is None else node.gpu.cards
    return max(
        (reserve_bytes(card.compute_capability) for card in cards), default=reserve_bytes(None)
    )
