"""
PURE. Everything that was asked for one call: pods, nodes, agents, and what could not be asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gpufence.cards import NodeCards, read_cards
from gpufence.dialects import Units
from gpufence.errors import GpufenceError
from gpufence.names import CARDS, DRIVER_CANARY, DRIVER_LIMITS
from gpufence.nodes import GpuNode, node_stating
from gpufence.text import duration, listed
from kubectl_gpufence.pods import annotations_of, name_of
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpufence.shape import Object
    from gpufence.snapshot import CardRow, PodRow, Snapshot
    from kubectl_gpufence.pods import SeenPod, StatusPod

STALE_SECONDS = 10.0
"""A sample older than this is said to be so; agents look once a second."""

MAY_NOT_ASK = "may not ask"
BY_CONDITION = (
    "~ is what pods say of themselves in condition gpufence.io/GPUMemory, which changes with a "
    "tenth of the limit"
)
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class NodeAgent:
    """
    One node's agent and its snapshot, or why there is none; `text` is the snapshot as it came,
    `denied` that the caller may not ask, `late` that it took long to give no answer. One that is
    asked at an address of its own is called as that.
    """

    node: str
    pod: str
    ready: bool = True
    snapshot: Snapshot | None = None
    trouble: str = ""
    denied: bool = False
    late: bool = False
    text: str = ""

    @property
    def is_direct(self) -> bool:
        return "/" in self.pod


@dataclass(frozen=True, slots=True)
class SeenNode:
    """
    A Node: what it offers as GPUs, and what its agent wrote on it or why that cannot be read;
    `limits`: it is labelled as one whose driver holds pods to limits; `canary`: what
    one has shown of that, as it is written.
    """

    name: str
    gpu: GpuNode | None
    cards: NodeCards | None = None
    cards_trouble: str = ""
    limits: bool = False
    canary: str | None = None


class SeenObjects(NamedTuple):
    """
    What the API server says: nodes and pods, whose agents are to be asked, and notes about what it
    does not say; `may_ask` is False where it does not even say which agents there are.
    """

    nodes: Mapping[str, SeenNode]
    agent_pods: tuple[StatusPod, ...]
    pods: tuple[SeenPod, ...] = ()
    notes: tuple[str, ...] = ()
    may_ask: bool = True


@dataclass(frozen=True, slots=True)
class ClusterAnswers:
    """The answers, with `notes` about those that are missing; agents and nodes are by node."""

    pods: tuple[SeenPod, ...] = ()
    agents: Mapping[str, NodeAgent] = field(default_factory=dict)
    nodes: Mapping[str, SeenNode] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    may_ask: bool = True

    @property
    def snapshots(self) -> dict[str, Snapshot]:
        """Return the snapshots of the agents that answered, by node."""
        return {
            node: agent.snapshot
            for node, agent in sorted(self.agents.items())
            if agent.snapshot is not None
        }


def cluster_of(objects: SeenObjects, answers: Iterable[NodeAgent]) -> ClusterAnswers:
    """Put together what API server and agents say, with notes about agents that do not answer."""
    agents = tuple(answers)
    chosen = by_node(agents)
    silent = [item for item in agents if not item.node or chosen[item.node] is item]
    notes = (*objects.notes, *silent_notes(silent))
    hidden = not objects.may_ask or any(item.denied for item in agents)
    if hidden and any(pod.memory for pod in objects.pods):
        notes = (*notes, BY_CONDITION)
    return ClusterAnswers(objects.pods, chosen, objects.nodes, notes, objects.may_ask)


def by_node(agents: Iterable[NodeAgent]) -> dict[str, NodeAgent]:
    """Choose one agent for each node: while one is replaced, the one that answers."""
    chosen: dict[str, NodeAgent] = {}
    for agent in agents:
        other = chosen.get(agent.node)
        if agent.node and (other is None or other.snapshot is None):
            chosen[agent.node] = agent
    return chosen


def see_node(raw: Object) -> SeenNode:
    """
    Read a Node; all of its labels but one are of no use here, and are half of it.

    Raises:
        InvalidError: it is no node at all.
    """
    said = annotations_of(raw)
    text = said.get(CARDS)
    cards, trouble = None, ""
    try:
        cards = None if text is None else read_cards(text)
    except GpufenceError as error:
        trouble = str(error)
    gpu = node_stating(raw, Units(), cards)
    limits = gpu is not None and gpu.labels.get(DRIVER_LIMITS) == "true"
    gpu = None if gpu is None else gpu._replace(labels={})
    return SeenNode(name_of(raw), gpu, cards, trouble, limits, said.get(DRIVER_CANARY))


def row_of(pod: SeenPod, snapshot: Snapshot | None) -> PodRow | None:
    """Find a pod in its agent's snapshot: the same one, not its successor of the same name."""
    rows = () if snapshot is None else snapshot.pods
    return next((row for row in rows if row.uid == pod.uid), None)


def card_of(snapshot: Snapshot, uuid: str) -> CardRow | None:
    return next((card for card in snapshot.cards if card.uuid == uuid), None)


def is_stale(snapshot: Snapshot) -> bool:
    return snapshot.stale_seconds is None or snapshot.stale_seconds > STALE_SECONDS


def why_silent(agent: NodeAgent | None, *, may_ask: bool) -> str:
    """Return in two words why no agent says anything of a node."""
    if not may_ask or (agent is not None and agent.denied):
        return MAY_NOT_ASK
    return "no agent" if agent is None else "agent silent"


def staleness(snapshot: Snapshot) -> str:
    """Return in two words how old a sample is, empty where it is fresh."""
    if not is_stale(snapshot):
        return ""
    age = snapshot.stale_seconds
    return "never measured" if age is None else f"stale {duration(age)}"


def silent_notes(agents: Iterable[NodeAgent]) -> tuple[str, ...]:
    """Return which agents did not answer and why, each reason once."""
    nodes: dict[str, list[str]] = {}
    for agent in agents:
        if agent.trouble:
            nodes.setdefault(agent.trouble, []).append(agent.node or agent.pod)
    return tuple(
        f"{counted(len(silent), 'agent')} ({named(silent)}): {reason}"
        for reason, silent in nodes.items()
    )


def named(items: Iterable[str]) -> str:
    """Name a few and count the rest."""
    return listed(sorted(items), _MOST_NAMED)
