"""
A node without kubelet or containers: it runs pods as local processes that hold simulated memory.

    options = NodeOptions(kubeconfig=plane.node_kubeconfig("node-a"), cards="2xT4")
    with SimulatedNode(options) as node:
        node.pids("team-a", "trainer")

It is a kubelet as far as pods can tell by their variables, volumes, cards, restarts and deletion.
Not simulated: probes, hooks, images, security contexts, limits of CPU and memory, tokens,
variables of Services, `kubectl exec` and `kubectl logs`.
"""

from simulator.node.lifecycle import Pauses
from simulator.node.node import SimulatedNode
from simulator.node.options import NodeOptions
from simulator.node.resources import Taint
from simulator.node.sharing import Dialect, Sharing

__all__ = [
    "Dialect",
    "NodeOptions",
    "Pauses",
    "Sharing",
    "SimulatedNode",
    "Taint",
]
