"""
`inspect NODE`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kube import ForbiddenError, NotFoundError, core
from kubectl_gpufence.errors import MissingError
from kubectl_gpufence.inspection import inspection
from kubectl_gpufence.scene import by_node

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.cluster import Cluster
    from kubectl_gpufence.terminal import Terminal


def run(call: argparse.Namespace, cluster: Cluster, terminal: Terminal) -> int:
    """
    Show a node's snapshot.

    Raises:
        MissingError: there is no such node, no agent on it, or none that answers.
    """
    pods, trouble = cluster.agents()
    if trouble:
        raise MissingError(trouble)
    agent = by_node(cluster.ask_agents(pods, frozenset({call.node}))).get(call.node)
    if agent is None:
        raise MissingError(_no_agent(call.node, cluster))
    if agent.snapshot is None:
        raise MissingError(f"agent {agent.pod} on node {call.node}: {agent.trouble}")
    if call.output == "json":
        terminal.json(json.loads(agent.text))
    else:
        terminal.lines(inspection(agent, agent.snapshot, terminal.look))
    return 0


def _no_agent(node: str, cluster: Cluster) -> str:
    """
    Say whether it is the node that is missing or its agent.
    """
    try:
        cluster.api.get(core("nodes", node))
    except NotFoundError:
        return f"there is no node {node}; `kubectl get nodes` lists those that are there"
    except ForbiddenError:
        return f"no agent runs on a node {node}"
    return f"no agent runs on node {node}; `kubectl gpufence doctor` says which nodes have one"
