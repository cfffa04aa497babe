"""
PURE. `top cards`: what each card has, holds and has promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.snapshot import CardRow
from kubectl_gpufence.scene import is_stale
from kubectl_gpufence.table import Cell, Column, Look, Tone, bar, table
from kubectl_gpufence.words import NOT_THERE, UNKNOWN, allowed, duration, exact, held, safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.snapshot import Snapshot
    from kubectl_gpufence.scene import Scene, SeenNode


@dataclass(frozen=True, slots=True)
class Line:
    """
    One card; without a snapshot it is what the Node says of it, and `state` says why.
    """

    node: str
    card: CardRow
    snapshot: Snapshot | None = None
    state: str = ""


def lines(scene: Scene) -> list[Line]:
    """
    Return all cards: of the agents that answer, else of the Nodes' annotations.
    """
    answering = scene.answering
    found = [
        Line(node, card, snapshot, state_of(card, snapshot))
        for node, snapshot in answering.items()
        for card in snapshot.cards
    ]
    for name, node in scene.nodes.items():
        if name not in answering:
            state = "agent silent" if name in scene.agents else "no agent asked"
            found += _of_node(node, state)
    return sorted(found, key=lambda line: (line.node, line.card.index, line.card.uuid))


def state_of(card: CardRow, snapshot: Snapshot) -> str:
    """
    Say in a few words what is wrong with a card, or with what is known of it.
    """
    found = []
    if card.trouble:
        found.append(safe(card.trouble))
    elif snapshot.trouble:
        found.append(safe(snapshot.trouble))
    if is_stale(snapshot):
        age = snapshot.stale_seconds
        found.append("never measured" if age is None else f"stale {duration(age)}")
    if card.mps:
        found.append("MPS: report only")
    if card.committed_bytes > card.total_bytes:
        found.append("overcommitted")
    return ", ".join(found) or "ok"


def cards_table(found: list[Line], look: Look, *, wide: bool) -> list[str]:
    columns = [
        Column("NODE", shrinks=True),
        Column("CARD", right=True),
        Column("MODEL", shrinks=True),
        Column("TOTAL", right=True),
        Column("USED", right=True),
        Column("SHARE"),
        Column("COMMITTED", right=True),
        Column("NOBODY'S", right=True),
        Column("STATE"),
    ]
    if wide:
        columns += [
            Column("FREE", right=True),
            Column("RESERVED", right=True),
            Column("LISTED", right=True),
            Column("UUID"),
        ]
    return table(columns, (_cells(line, look, wide) for line in found), look)


def cards_json(found: list[Line]) -> list[dict[str, object]]:
    return [
        {
            "node": line.node,
            "uuid": line.card.uuid,
            "index": line.card.index,
            "model": line.card.model,
            "total": exact(line.card.total_bytes),
            "used": exact(line.card.used_bytes),
            "free": exact(line.card.free_bytes),
            "reserved": exact(line.card.reserved_bytes),
            "committed": exact(line.card.committed_bytes) if line.snapshot else None,
            "unattributed": exact(line.card.unattributed_bytes),
            "mps": line.card.mps,
            "stale": line.snapshot.stale_seconds if line.snapshot else None,
            "state": line.state,
        }
        for line in found
    ]


def _of_node(node: SeenNode, state: str) -> Iterator[Line]:
    cards = () if node.gpu is None else node.gpu.cards
    for card in cards:
        row = CardRow(card.uuid, card.index, card.model, card.memory_bytes)
        yield Line(node.name, row, state=state)


def _cells(line: Line, look: Look, wide: bool) -> list[Cell]:  # noqa: FBT001 (the table's own switch)
    card = line.card
    told = line.snapshot is not None
    good = Tone.GOOD if line.state == "ok" else Tone.WARN if told else Tone.FAINT
    cells = [
        Cell(safe(line.node)),
        Cell(str(card.index)),
        Cell(safe(card.model) or NOT_THERE),
        Cell(allowed(card.total_bytes)),
        Cell(held(card.used_bytes)),
        bar(card.used_bytes, card.total_bytes, look),
        Cell(held(card.committed_bytes) if told else UNKNOWN),
        Cell(held(card.unattributed_bytes)),
        Cell(line.state, good),
    ]
    if wide:
        age = card.listed_seconds_ago
        cells += [
            Cell(allowed(card.free_bytes, none=UNKNOWN)),
            Cell(held(card.reserved_bytes)),
            Cell(UNKNOWN if age is None else f"{duration(age)} ago"),
            Cell(safe(card.uuid)),
        ]
    return cells
