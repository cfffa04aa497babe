"""
Finding out what `top` and `report` show: nodes and agents first, then pods and snapshots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpufence.cluster import node_of
from kubectl_gpufence.scene import Scene, by_node, silent_notes

if TYPE_CHECKING:
    from kube import JsonObject
    from kubectl_gpufence.cluster import Cluster
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.scene import SeenNode

NO_AGENTS = "no agent runs in this cluster: nothing measured is shown"


def gather_pods(cluster: Cluster, namespace: str, node: str) -> Scene:
    """
    Find out about the pods of a namespace, or of all, and about the nodes they run on.
    """
    nodes, node_note, agents, agent_note = _ground(cluster)
    pods = cluster.pods(namespace, node, nodes)
    wanted = None if not namespace else frozenset(pod.node for pod in pods)
    return _scene(cluster, tuple(pods), nodes, _on(agents, node), (node_note, agent_note), wanted)


def gather_nodes(cluster: Cluster, node: str) -> Scene:
    """
    Find out about nodes and their cards.
    """
    nodes, node_note, agents, agent_note = _ground(cluster)
    if node:
        nodes = {name: found for name, found in nodes.items() if name == node}
    return _scene(cluster, (), nodes, _on(agents, node), (node_note, agent_note), None)


def _ground(
    cluster: Cluster,
) -> tuple[dict[str, SeenNode], str, list[JsonObject], str]:
    nodes, node_note = cluster.nodes()
    agents, agent_note = cluster.agents()
    return nodes, node_note, agents, agent_note or ("" if agents else NO_AGENTS)


def _on(agents: list[JsonObject], node: str) -> list[JsonObject]:
    return [pod for pod in agents if not node or node_of(pod) == node]


def _scene(
    cluster: Cluster,
    pods: tuple[SeenPod, ...],
    nodes: dict[str, SeenNode],
    agents: list[JsonObject],
    notes: tuple[str, ...],
    wanted: frozenset[str] | None,
) -> Scene:
    answers = cluster.ask_agents(agents, wanted)
    chosen = by_node(answers)
    silent = [item for item in answers if not item.node or chosen[item.node] is item]
    told = tuple(note for note in notes if note)
    return Scene(pods, chosen, nodes, (*told, *silent_notes(silent)))
