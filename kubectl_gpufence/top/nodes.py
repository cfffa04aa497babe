"""
PURE. `top nodes`: the sums of each node's cards, its pods, and how its agent is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubectl_gpufence.scene import is_stale
from kubectl_gpufence.table import Cell, Column, Look, Tone, bar, table
from kubectl_gpufence.top.cards import Line as CardLine
from kubectl_gpufence.top.cards import lines as card_lines
from kubectl_gpufence.words import UNKNOWN, allowed, duration, exact, held, safe, total

if TYPE_CHECKING:
    from gpufence.snapshot import PodRow, Snapshot
    from kubectl_gpufence.scene import Agent, Scene


@dataclass(frozen=True, slots=True)
class Line:
    """
    One node. Sums are None where a part of them is unknown, or where no card is.
    """

    node: str
    cards: int | None
    total_bytes: int | None
    used_bytes: int | None
    committed_bytes: int | None
    unattributed_bytes: int | None
    fenced: int | None
    over: int | None
    agent: Cell
    snapshot: Snapshot | None = None


def lines(scene: Scene) -> list[Line]:
    """
    Return every node that has cards or an agent.
    """
    cards: dict[str, list[CardLine]] = {name: [] for name in scene.agents}
    for line in card_lines(scene):
        cards.setdefault(line.node, []).append(line)
    return [_line(name, cards[name], scene.agents.get(name)) for name in sorted(cards)]


def nodes_table(found: list[Line], look: Look, *, wide: bool) -> list[str]:
    columns = [
        Column("NODE", shrinks=True),
        Column("CARDS", right=True),
        Column("TOTAL", right=True),
        Column("USED", right=True),
        Column("SHARE"),
        Column("COMMITTED", right=True),
        Column("NOBODY'S", right=True),
        Column("FENCED", right=True),
        Column("OVER", right=True),
        Column("AGENT"),
    ]
    if wide:
        columns += map(Column, ("HIGHEST", "VERSION", "DRIVER"))
    return table(columns, (_cells(line, look, wide) for line in found), look)


def nodes_json(found: list[Line]) -> list[dict[str, object]]:
    return [
        {
            "node": line.node,
            "cards": line.cards,
            "total": exact(line.total_bytes),
            "used": exact(line.used_bytes),
            "committed": exact(line.committed_bytes),
            "unattributed": exact(line.unattributed_bytes),
            "fenced": line.fenced,
            "over": line.over,
            "agent": line.agent.text,
            "highest": line.snapshot.highest if line.snapshot else None,
            "version": line.snapshot.version if line.snapshot else None,
            "driver": line.snapshot.driver if line.snapshot else None,
        }
        for line in found
    ]


def agent_state(agent: Agent | None) -> Cell:
    """
    Say in a few words how an agent is.
    """
    if agent is None:
        return Cell("none asked", Tone.FAINT)
    snapshot = agent.snapshot
    if snapshot is None:
        return Cell("silent", Tone.BAD)
    if snapshot.trouble:
        return Cell(safe(snapshot.trouble), Tone.BAD)
    if is_stale(snapshot):
        age = snapshot.stale_seconds
        return Cell("never measured" if age is None else f"stale {duration(age)}", Tone.BAD)
    if not snapshot.fresh:
        return Cell("cut off from the API", Tone.WARN)
    if snapshot.brake:
        return Cell("braked", Tone.WARN)
    return Cell("ok", Tone.GOOD)


def _line(name: str, cards: list[CardLine], agent: Agent | None) -> Line:
    snapshot = None if agent is None else agent.snapshot
    rows = () if snapshot is None else snapshot.pods
    return Line(
        node=name,
        cards=None if not cards else len(cards),
        total_bytes=None if not cards else sum(line.card.total_bytes for line in cards),
        used_bytes=None if not cards else total([line.card.used_bytes for line in cards]),
        committed_bytes=sum(line.card.committed_bytes for line in cards)
        if cards and snapshot
        else None,
        unattributed_bytes=None
        if not cards
        else total([line.card.unattributed_bytes for line in cards]),
        fenced=sum(1 for row in rows if row.mode) if snapshot else None,
        over=sum(1 for row in rows if _is_over(row)) if snapshot else None,
        agent=agent_state(agent),
        snapshot=snapshot,
    )


def _is_over(row: PodRow) -> bool:
    return any(use.over_seconds for use in row.uses)


def _cells(line: Line, look: Look, wide: bool) -> list[Cell]:  # noqa: FBT001 (the table's own switch)
    cells = [
        Cell(safe(line.node)),
        Cell(UNKNOWN if line.cards is None else str(line.cards)),
        Cell(allowed(line.total_bytes, none=UNKNOWN)),
        Cell(held(line.used_bytes)),
        bar(line.used_bytes, line.total_bytes, look),
        Cell(held(line.committed_bytes)),
        Cell(held(line.unattributed_bytes)),
        Cell(UNKNOWN if line.fenced is None else str(line.fenced)),
        Cell(
            UNKNOWN if line.over is None else str(line.over), Tone.BAD if line.over else Tone.PLAIN
        ),
        line.agent,
    ]
    if wide:
        said = line.snapshot
        texts = (said.highest, said.version, said.driver) if said else ("", "", "")
        cells += (Cell(safe(text) or UNKNOWN) for text in texts)
    return cells
