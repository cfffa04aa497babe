"""
PURE. `top cards` and `top nodes`: what each card has, holds and has promised, and the sums by node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence.snapshot import CardRow
from gpufence.text import duration, printable
from kubectl_gpufence.cluster_view import staleness
from kubectl_gpufence.table import (
    NOT_THERE,
    UNKNOWN,
    Cell,
    Column,
    Tone,
    allowed,
    bar,
    exact,
    held,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpufence.snapshot import Snapshot
    from kubectl_gpufence.cluster_view import NodeAgent, Scene, SeenNode
    from kubectl_gpufence.table import Display


class CardLine(NamedTuple):
    """One card; without a snapshot it is what the Node says of it, and `state` says why."""

    node: str
    card: CardRow
    snapshot: Snapshot | None = None
    state: str = ""

    @property
    def committed_bytes(self) -> int | None:
        return self.card.committed_bytes if self.snapshot else None


class NodeLine(NamedTuple):
    """
    One node and the sums of its cards, None where a part of them is unknown, or where no card is.
    `fenced` and `over` are pods.
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
    snapshot: Snapshot | None


def card_lines(scene: Scene) -> list[CardLine]:
    """Return all cards: of the agents that answer, else of the Nodes' annotations."""
    snapshots = scene.snapshots
    lines = [
        CardLine(node, card, snapshot, _card_state(card, snapshot))
        for node, snapshot in snapshots.items()
        for card in snapshot.cards
    ]
    for name, node in scene.nodes.items():
        if name not in snapshots:
            state = "agent silent" if name in scene.agents else "no agent asked"
            lines += _of_node(node, state)
    return sorted(lines, key=lambda line: (line.node, line.card.index, line.card.uuid))


def node_lines(scene: Scene) -> list[NodeLine]:
    """Return every node that has cards or an agent."""
    cards: dict[str, list[CardLine]] = {name: [] for name in scene.agents}
    for line in card_lines(scene):
        cards.setdefault(line.node, []).append(line)
    return [_node_line(name, cards[name], scene.agents.get(name)) for name in sorted(cards)]


def cards_table(lines: Sequence[CardLine], display: Display, *, wide: bool) -> list[str]:
    return table(card_columns(display, wide=wide), lines, display)


def card_columns(display: Display, *, wide: bool) -> list[Column[CardLine]]:
    columns: list[Column[CardLine]] = [
        Column("NODE", lambda line: line.node, shrinks=True),
        Column("CARD", lambda line: str(line.card.index), right=True),
        Column("MODEL", lambda line: line.card.model or NOT_THERE, shrinks=True),
        Column("TOTAL", lambda line: allowed(line.card.total_bytes), right=True),
        Column("USED", lambda line: held(line.card.used_bytes), right=True),
        Column("SHARE", lambda line: bar(line.card.used_bytes, line.card.total_bytes, display)),
        Column("COMMITTED", lambda line: held(line.committed_bytes), right=True),
        Column("NOBODY'S", lambda line: held(line.card.unattributed_bytes), right=True),
        Column("STATE", _state_cell),
    ]
    if wide:
        columns += [
            Column("FREE", lambda line: allowed(line.card.free_bytes, none=UNKNOWN), right=True),
            Column("RESERVED", lambda line: held(line.card.reserved_bytes), right=True),
            Column("LISTED", _listed, right=True),
            Column("UUID", lambda line: line.card.uuid),
        ]
    return columns


def nodes_table(lines: Sequence[NodeLine], display: Display, *, wide: bool) -> list[str]:
    return table(node_columns(display, wide=wide), lines, display)


def node_columns(display: Display, *, wide: bool) -> list[Column[NodeLine]]:
    columns: list[Column[NodeLine]] = [
        Column("NODE", lambda line: line.node, shrinks=True),
        Column("CARDS", lambda line: _number(line.cards), right=True),
        Column("TOTAL", lambda line: allowed(line.total_bytes, none=UNKNOWN), right=True),
        Column("USED", lambda line: held(line.used_bytes), right=True),
        Column("SHARE", lambda line: bar(line.used_bytes, line.total_bytes, display)),
        Column("COMMITTED", lambda line: held(line.committed_bytes), right=True),
        Column("NOBODY'S", lambda line: held(line.unattributed_bytes), right=True),
        Column("FENCED", lambda line: _number(line.fenced), right=True),
        Column(
            "OVER",
            lambda line: Cell(_number(line.over), Tone.BAD if line.over else Tone.PLAIN),
            right=True,
        ),
        Column("AGENT", lambda line: line.agent),
    ]
    if wide:
        columns += [
            Column("HIGHEST", lambda line: (line.snapshot and line.snapshot.highest) or UNKNOWN),
            Column("VERSION", lambda line: (line.snapshot and line.snapshot.version) or UNKNOWN),
            Column("DRIVER", lambda line: (line.snapshot and line.snapshot.driver) or UNKNOWN),
        ]
    return columns


def card_json(line: CardLine) -> dict[str, object]:
    return {
        "node": line.node,
        "uuid": line.card.uuid,
        "index": line.card.index,
        "model": line.card.model,
        "total": exact(line.card.total_bytes),
        "used": exact(line.card.used_bytes),
        "free": exact(line.card.free_bytes),
        "reserved": exact(line.card.reserved_bytes),
        "committed": exact(line.committed_bytes),
        "unattributed": exact(line.card.unattributed_bytes),
        "mps": line.card.mps,
        "stale": line.snapshot.stale_seconds if line.snapshot else None,
        "state": line.state,
    }


def node_json(line: NodeLine) -> dict[str, object]:
    return {
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


def _node_line(node: str, cards: Sequence[CardLine], agent: NodeAgent | None) -> NodeLine:
    snapshot = None if agent is None else agent.snapshot
    pods = () if snapshot is None else snapshot.pods
    over = [pod for pod in pods if any(use.over_seconds for use in pod.uses)]
    return NodeLine(
        node=node,
        cards=len(cards) or None,
        total_bytes=total_of([line.card.total_bytes for line in cards]),
        used_bytes=total_of([line.card.used_bytes for line in cards]),
        committed_bytes=total_of([line.committed_bytes for line in cards]),
        unattributed_bytes=total_of([line.card.unattributed_bytes for line in cards]),
        fenced=len([pod for pod in pods if pod.mode]) if snapshot else None,
        over=len(over) if snapshot else None,
        agent=_agent_state(agent),
        snapshot=snapshot,
    )


def _of_node(node: SeenNode, state: str) -> Iterator[CardLine]:
    for card in () if node.gpu is None else node.gpu.cards:
        row = CardRow(card.uuid, card.index, card.full_model, card.memory_bytes)
        yield CardLine(node.name, row, state=state)


def _card_state(card: CardRow, snapshot: Snapshot) -> str:
    """
    Return in a few words what is wrong with a card, or with what is known of it.

    What its node complains of is another card's where this one is measured.
    """
    stale = staleness(snapshot)
    of_node = snapshot.trouble if stale or card.used_bytes is None else ""
    states = [printable(card.trouble or of_node), stale]
    if card.mps:
        states.append("MPS: report only")
    if card.committed_bytes > card.total_bytes:
        states.append("overcommitted")
    return ", ".join(filter(None, states)) or "ok"


def _agent_state(agent: NodeAgent | None) -> Cell:
    """Return in a few words how an agent is."""
    if agent is None:
        return Cell("none asked", Tone.FAINT)
    snapshot = agent.snapshot
    if snapshot is None:
        return Cell("silent", Tone.BAD)
    trouble = printable(snapshot.trouble) or staleness(snapshot)
    if trouble:
        return Cell(trouble, Tone.BAD)
    if not snapshot.fresh:
        return Cell("cut off from the API", Tone.WARN)
    return Cell("braked", Tone.WARN) if snapshot.brake else Cell("ok", Tone.GOOD)


def _state_cell(line: CardLine) -> Cell:
    if line.snapshot is None:
        return Cell(line.state, Tone.FAINT)
    return Cell(line.state, Tone.GOOD if line.state == "ok" else Tone.WARN)


def _listed(line: CardLine) -> str:
    age = line.card.listed_seconds_ago
    return UNKNOWN if age is None else f"{duration(age)} ago"


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else str(number)


def total_of(amounts: Sequence[int | None]) -> int | None:
    """Add up, unless one of them is unknown or there are none."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None
