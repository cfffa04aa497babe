"""
PURE. `top cards` and `top nodes`: what each card has, holds and has promised, and the sums by node.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.fences import Fence
from gpufence.snapshot import CardRow
from gpufence.text import duration, printable
from kubectl_gpufence.cluster_view import staleness, why_silent
from kubectl_gpufence.verdicts import held_back
from kubectl_gpufence.view import (
    NOT_THERE,
    UNKNOWN,
    Bar,
    Cell,
    Field,
    Tone,
    allowed,
    amount,
    exact,
    held,
    share_of,
    total_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpufence.snapshot import Snapshot
    from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent, SeenNode


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


def card_lines(cluster: ClusterAnswers) -> list[CardLine]:
    """Return all cards: of the agents that answer, else of the Nodes' annotations."""
    snapshots = cluster.snapshots
    lines = [
        CardLine(node, card, snapshot, _card_state(card, snapshot))
        for node, snapshot in snapshots.items()
        for card in snapshot.cards
    ]
    for name, node in cluster.nodes.items():
        if name not in snapshots:
            state = why_silent(cluster.agents.get(name), may_ask=cluster.may_ask)
            lines += _of_node(node, state)
    return sorted(lines, key=lambda line: (line.node, line.card.index, line.card.uuid))


def node_lines(cluster: ClusterAnswers) -> list[NodeLine]:
    """Return every node that has cards or an agent."""
    cards: dict[str, list[CardLine]] = {name: [] for name in cluster.agents}
    for line in card_lines(cluster):
        cards.setdefault(line.node, []).append(line)
    return [_node_line(name, cards[name], cluster) for name in sorted(cards)]


def _node_line(node: str, cards: Sequence[CardLine], cluster: ClusterAnswers) -> NodeLine:
    agent = cluster.agents.get(node)
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
        agent=_agent_state(agent, may_ask=cluster.may_ask),
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
    states += [f"{held(item.used_bytes)} left by {printable(item.pod)}" for item in card.left]
    return ", ".join(filter(None, states)) or "ok"


def _agent_state(agent: NodeAgent | None, *, may_ask: bool) -> Cell:
    """Return in a few words how an agent is."""
    if agent is None or agent.snapshot is None:
        why = why_silent(agent, may_ask=may_ask)
        silent = Cell("silent", Tone.BAD)
        return {"agent silent": silent, "no agent": Cell("none", Tone.FAINT)}.get(why, Cell(why))
    snapshot = agent.snapshot
    trouble = printable(snapshot.trouble) or staleness(snapshot)
    if trouble:
        return Cell(trouble, Tone.BAD)
    if not snapshot.fresh:
        return Cell("cut off from the API", Tone.WARN)
    brake = snapshot.brake
    return Cell(held_back(brake), Tone.WARN) if brake else Cell("ok", Tone.GOOD)


def _left(line: CardLine) -> list[dict[str, object]]:
    return [
        {"pod": item.pod, "pid": item.pid, "used": exact(item.used_bytes)}
        for item in line.card.left
    ]


def _state_cell(line: CardLine) -> Cell:
    if line.snapshot is None:
        return Cell(line.state, Tone.FAINT)
    return Cell(line.state, Tone.GOOD if line.state == "ok" else Tone.WARN)


def _known(amount: int | None) -> str:
    return allowed(amount, none=UNKNOWN)


def _over(line: NodeLine) -> Cell:
    return Cell(
        UNKNOWN if line.over is None else str(line.over), Tone.BAD if line.over else Tone.PLAIN
    )


def _told(name: str, value: Callable[[Snapshot], str], place: int) -> Field[NodeLine]:
    """Make a field of what only an agent says of its node."""

    def said(line: NodeLine) -> str | None:
        return value(line.snapshot) if line.snapshot else None

    return Field(name, said, name.upper(), lambda line: said(line) or UNKNOWN, wide=place)


def _listed(line: CardLine) -> str:
    age = line.card.listed_seconds_ago
    return UNKNOWN if age is None else f"{duration(age)} ago"


def _fences(line: CardLine) -> dict[str, int] | None:
    """Count the pods on a card by what holds them; None where no agent says."""
    if line.snapshot is None:
        return None
    uses = (use for pod in line.snapshot.pods for use in pod.uses)
    counts = Counter(use.fence for use in uses if use.card == line.card.uuid and use.fence)
    return {word: counts[word] for word in sorted(counts, key=_strength)}


def _strength(word: str) -> tuple[int, str]:
    """Return the strongest first, and what a newer agent calls a fence last."""
    return ([*Fence].index(Fence(word)) if word in {*Fence} else len(Fence)), word


def _fence_counts(line: CardLine) -> str:
    counts = _fences(line)
    if counts is None:
        return UNKNOWN
    return ", ".join(f"{printable(word)} {count}" for word, count in counts.items()) or NOT_THERE


CARD_FIELDS: Final[tuple[Field[CardLine], ...]] = (
    Field("node", lambda line: line.node, "NODE", shrinks=True),
    Field("uuid", lambda line: line.card.uuid, "UUID", wide=4),
    Field("index", lambda line: line.card.index, "CARD", right=True),
    Field("model", lambda line: line.card.model, "MODEL", shrinks=True, spare=2),
    amount("total", lambda line: line.card.total_bytes, "TOTAL", allowed),
    amount("used", lambda line: line.card.used_bytes, "USED"),
    Field(
        title="SHARE",
        cell=lambda line: Bar(line.card.used_bytes, line.card.total_bytes),
        spare=5,
        order=lambda line: share_of(line.card.used_bytes, line.card.total_bytes),
        largest_first=True,
    ),
    amount(
        "free",
        lambda line: line.card.free_bytes,
        "FREE",
        write=_known,
        wide=1,
    ),
    amount("reserved", lambda line: line.card.reserved_bytes, "RESERVED", wide=2),
    amount("committed", lambda line: line.committed_bytes, "COMMITTED", spare=3),
    amount("unattributed", lambda line: line.card.unattributed_bytes, "NO POD'S", spare=1),
    Field("mps", lambda line: line.card.mps),
    Field("left", _left, in_csv=False),
    Field("stale", lambda line: line.snapshot.stale_seconds if line.snapshot else None),
    Field(
        "state",
        lambda line: line.state,
        "STATE",
        _state_cell,
        shrinks=True,
        spare=6,
        order=lambda line: (line.state == "ok", line.state),
    ),
    Field(title="LISTED", cell=_listed, right=True, wide=3),
    Field("fences", _fences, "FENCE", _fence_counts, wide=5),
)
"""What is said of a card."""

NODE_FIELDS: Final[tuple[Field[NodeLine], ...]] = (
    Field("node", lambda line: line.node, "NODE", shrinks=True),
    Field("cards", lambda line: line.cards, "CARDS", right=True, spare=4, largest_first=True),
    amount("total", lambda line: line.total_bytes, "TOTAL", write=_known),
    amount("used", lambda line: line.used_bytes, "USED"),
    Field(
        title="SHARE",
        cell=lambda line: Bar(line.used_bytes, line.total_bytes),
        spare=5,
        order=lambda line: share_of(line.used_bytes, line.total_bytes),
        largest_first=True,
    ),
    amount("committed", lambda line: line.committed_bytes, "COMMITTED", spare=3),
    amount("unattributed", lambda line: line.unattributed_bytes, "NO POD'S", spare=1),
    Field("fenced", lambda line: line.fenced, "FENCED", right=True, spare=2, largest_first=True),
    Field("over", lambda line: line.over, "OVER", _over, right=True, largest_first=True),
    Field(
        "agent",
        lambda line: line.agent.text,
        "AGENT",
        lambda line: line.agent,
        shrinks=True,
        spare=6,
        order=lambda line: (line.agent.tone is Tone.GOOD, line.agent.text),
    ),
    _told("highest", lambda snapshot: snapshot.highest, 1),
    _told("version", lambda snapshot: snapshot.version, 2),
    _told("driver", lambda snapshot: snapshot.driver, 3),
)
"""What is said of a node."""
