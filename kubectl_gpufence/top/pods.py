"""
PURE. `top pods`: one line for each pod and card, the worst first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence import names
from kubectl_gpufence.outcomes import verdict
from kubectl_gpufence.scene import card_of, is_stale, row_of
from kubectl_gpufence.table import Cell, Column, Look, Tone, bar, table
from kubectl_gpufence.words import NOT_THERE, UNKNOWN, allowed, duration, exact, held, safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.snapshot import CardRow, PodRow, Snapshot, UseRow
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.scene import Agent, Scene


@dataclass(frozen=True, slots=True)
class Line:
    """
    One pod on one card. `pod` is missing for pods that only the agent counts as using a GPU,
    `row` and `use` where nothing is measured, and then `state` says why.
    """

    node: str
    pod: SeenPod | None = None
    row: PodRow | None = None
    use: UseRow | None = None
    card: CardRow | None = None
    state: str = ""
    stale_seconds: float | None = 0.0

    @property
    def namespace(self) -> str:
        return self.pod.namespace if self.pod else self.row.namespace if self.row else ""

    @property
    def name(self) -> str:
        return self.pod.name if self.pod else self.row.name if self.row else ""

    @property
    def owner(self) -> str:
        return self.row.owner if self.row else self.pod.owner if self.pod else ""

    @property
    def mode(self) -> str:
        """
        Return the mode that counts, or that of the plan where no agent says.
        """
        if self.row is not None:
            return self.row.mode
        plan = None if self.pod is None else self.pod.words.plan
        return "" if plan is None else str(plan.mode)

    @property
    def limit_bytes(self) -> int | None:
        if self.use is not None and self.use.limit_bytes is not None:
            return self.use.limit_bytes
        return None if self.pod is None else self.pod.limit_bytes

    @property
    def told_bytes(self) -> int | None:
        if self.pod is not None:
            return self.pod.told_bytes
        return None if self.use is None else self.use.allowance_bytes

    @property
    def used_bytes(self) -> int | None:
        return None if self.use is None else self.use.used_bytes


def lines(scene: Scene, namespace: str) -> list[Line]:
    """
    Return the lines of a namespace, or of all, by the share of the limit that is used.
    """
    found = [line for pod in scene.pods for line in _of_pod(pod, scene)]
    known = {pod.uid for pod in scene.pods}
    for node, snapshot in scene.answering.items():
        for row in snapshot.pods:
            if row.uid not in known and namespace in ("", row.namespace):
                found += (
                    Line(node, None, row, use, card_of(snapshot, use.card), "", _age(snapshot))
                    for use in row.uses
                )
    return sorted(found, key=_rank)


def pods_table(found: list[Line], look: Look, *, namespaces: bool, wide: bool) -> list[str]:
    columns = [
        *([Column("NAMESPACE", shrinks=True)] if namespaces else []),
        Column("POD", shrinks=True),
        Column("NODE", shrinks=True),
        Column("CARD", right=True),
        Column("LIMIT", right=True),
        Column("TOLD", right=True),
        Column("USED", right=True),
        Column("SHARE"),
        Column("VERDICT"),
    ]
    if wide:
        columns += map(Column, ("MODE", "DIALECT", "PROCESSES", "OWNER", "UUID"))
    return table(columns, (_cells(line, look, namespaces, wide) for line in found), look)


def pods_json(found: list[Line]) -> list[dict[str, object]]:
    return [_object(line) for line in found]


def _of_pod(pod: SeenPod, scene: Scene) -> Iterator[Line]:
    agent = scene.agents.get(pod.node)
    snapshot = None if agent is None else agent.snapshot
    row = row_of(pod, snapshot)
    if snapshot is None or row is None:
        yield Line(pod.node, pod, state=_state(pod, agent))
        return
    for use in row.uses:
        yield Line(pod.node, pod, row, use, card_of(snapshot, use.card), "", _age(snapshot))
    if not row.uses:
        yield Line(pod.node, pod, row, state="idle", stale_seconds=_age(snapshot))


def _state(pod: SeenPod, agent: Agent | None) -> str:
    """
    Say why nothing is measured.
    """
    if not pod.node:
        return "not placed yet"
    if agent is None:
        return "no agent asked"
    return "agent silent" if agent.snapshot is None else "not seen yet"


def _age(snapshot: Snapshot) -> float | None:
    return snapshot.stale_seconds if is_stale(snapshot) else 0.0


def _rank(line: Line) -> tuple[bool, float, str, str, str]:
    used, limit = line.used_bytes, line.limit_bytes
    share = used / limit if used is not None and limit else 0.0
    return used is None, -share, line.namespace, line.name, line.use.card if line.use else ""


def _cells(line: Line, look: Look, namespaces: bool, wide: bool) -> list[Cell]:  # noqa: FBT001 (the table's own switches)
    index = line.card.index if line.card else None
    cells = [
        *([Cell(safe(line.namespace))] if namespaces else []),
        Cell(safe(line.name)),
        Cell(safe(line.node) or NOT_THERE),
        Cell(NOT_THERE if line.use is None else UNKNOWN if index is None else str(index)),
        Cell(allowed(line.limit_bytes)),
        _told(line),
        Cell(held(line.used_bytes, none=NOT_THERE if line.use is None else UNKNOWN)),
        bar(line.used_bytes, line.limit_bytes, look) if line.use else Cell(NOT_THERE, Tone.FAINT),
        _verdict(line),
    ]
    if wide:
        processes = len(line.use.processes) if line.use else None
        dialect = line.pod.declaration.dialect if line.pod else ""
        texts = (line.mode, dialect, processes, line.owner, line.use.card if line.use else "")
        cells += (Cell(safe(str(NOT_THERE if text in ("", None) else text))) for text in texts)
    return cells


def _told(line: Line) -> Cell:
    """
    Say what was injected: an amount, one in parentheses that is only planned, or why there is none.
    """
    pod, amount = line.pod, line.told_bytes
    if pod is None or not pod.injected:
        missed = bool(line.row and line.row.mode and not line.row.injected)
        return Cell("not seen", Tone.WARN) if missed else Cell(allowed(amount), Tone.FAINT)
    if pod.words.trouble:
        return Cell(UNKNOWN, Tone.WARN)
    if pod.injected == names.INJECTED_OPTED_OUT:
        return Cell("opted out", Tone.FAINT)
    if pod.only_planned:
        return Cell(f"({allowed(amount)})", Tone.FAINT)
    if pod.injected == names.INJECTED_YES or amount is not None:
        return Cell(allowed(amount))
    return Cell("nothing", Tone.FAINT)


def _verdict(line: Line) -> Cell:
    if line.row is None or line.use is None:
        return Cell(line.state, Tone.FAINT)
    if line.stale_seconds is None:
        return Cell("never measured", Tone.WARN)
    if line.stale_seconds:
        return Cell(f"stale {duration(line.stale_seconds)}", Tone.WARN)
    return verdict(line.row, line.use)


def _object(line: Line) -> dict[str, object]:
    pod, use, row = line.pod, line.use, line.row
    return {
        "namespace": line.namespace,
        "name": line.name,
        "node": line.node,
        "card": None if use is None else use.card,
        "index": line.card.index if line.card else None,
        "mode": line.mode,
        "owner": line.owner,
        "dialect": pod.declaration.dialect if pod else "",
        "injected": pod.injected if pod else "",
        "limit": exact(line.limit_bytes),
        "told": exact(line.told_bytes),
        "used": exact(line.used_bytes),
        "outcome": use.outcome if use else line.state,
        "over": use.over_seconds if use else None,
        "due": use.due_seconds if use else None,
        "processes": len(use.processes) if use else None,
        "undeclared": row.undeclared if row else "",
        "stale": line.stale_seconds if use else None,
    }
