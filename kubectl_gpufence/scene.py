"""
PURE. Everything that was found out for one call: pods, nodes, agents, and what could not be asked.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence.cards import NodeCards, read_cards
from gpufence.dialects import Units
from gpufence.errors import GpufenceError
from gpufence.names import CARDS
from gpufence.nodes import GpuNode, read_node
from gpufence.shape import Object, as_object, as_text
from kubectl_gpufence.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpufence.snapshot import CardRow, PodRow, Snapshot
    from kubectl_gpufence.pods import SeenPod

STALE_SECONDS = 10.0
"""A sample older than this is said to be so; agents look once a second."""

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Agent:
    """
    One node's agent and its snapshot, or why there is none; `text` is the snapshot as it came.
    """

    node: str
    pod: str
    ready: bool = True
    snapshot: Snapshot | None = None
    trouble: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class SeenNode:
    """
    A Node: what it offers as GPUs, and what its agent wrote on it or why that cannot be read.
    """

    name: str
    gpu: GpuNode | None
    cards: NodeCards | None = None
    cards_trouble: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """
    The answers, with `notes` about those that are missing; agents and nodes are by node.
    """

    pods: tuple[SeenPod, ...] = ()
    agents: Mapping[str, Agent] = field(default_factory=dict)
    nodes: Mapping[str, SeenNode] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def answering(self) -> dict[str, Snapshot]:
        """
        Return the snapshots by node.
        """
        return {
            node: agent.snapshot
            for node, agent in sorted(self.agents.items())
            if agent.snapshot is not None
        }


def by_node(agents: Iterable[Agent]) -> dict[str, Agent]:
    """
    Choose one agent for each node: while one is replaced, the one that answers.
    """
    found: dict[str, Agent] = {}
    for agent in agents:
        known = found.get(agent.node)
        if agent.node and (known is None or known.snapshot is None):
            found[agent.node] = agent
    return found


def see_node(raw: Object) -> SeenNode:
    """
    Read a Node.

    Raises:
        InvalidError: it is no node at all.
    """
    metadata = as_object(raw.get("metadata"), "metadata")
    annotations = as_object(metadata.get("annotations"), "metadata.annotations")
    name = as_text(metadata.get("name"), "metadata.name")
    gpu = read_node(raw, Units())
    text = annotations.get(CARDS)
    if not isinstance(text, str):
        return SeenNode(name, gpu)
    try:
        return SeenNode(name, gpu, cards=read_cards(text))
    except GpufenceError as error:
        return SeenNode(name, gpu, cards_trouble=str(error))


def row_of(pod: SeenPod, snapshot: Snapshot | None) -> PodRow | None:
    """
    Find a pod in its agent's snapshot: the same one, not its successor of the same name.
    """
    rows = () if snapshot is None else snapshot.pods
    return next((row for row in rows if row.uid == pod.uid), None)


def card_of(snapshot: Snapshot | None, uuid: str) -> CardRow | None:
    cards = () if snapshot is None else snapshot.cards
    return next((card for card in cards if card.uuid == uuid), None)


def is_stale(snapshot: Snapshot) -> bool:
    return snapshot.stale_seconds is None or snapshot.stale_seconds > STALE_SECONDS


def silent_notes(agents: Iterable[Agent]) -> tuple[str, ...]:
    """
    Say which agents did not answer and why, each reason once.
    """
    found = Counter(agent.trouble for agent in agents if agent.trouble)
    nodes: dict[str, list[str]] = {reason: [] for reason in found}
    for agent in agents:
        if agent.trouble:
            nodes[agent.trouble].append(agent.node or agent.pod)
    return tuple(
        f"{counted(number, 'agent')} ({named(nodes[reason])}): {reason}"
        for reason, number in found.items()
    )


def named(items: Iterable[str]) -> str:
    """
    Name a few and count the rest.
    """
    known = sorted(items)
    rest = len(known) - _MOST_NAMED
    return ", ".join(known[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
