"""
A node without kubelet or containers: it runs pods as local processes that hold simulated memory.

    options = NodeOptions(kubeconfig=plane.node_kubeconfig("node-a"), cards="2xT4")
    with SimulatedNode(options) as node:
        node.pids("team-a", "trainer")

It is a kubelet as far as pods can tell by their variables, volumes, cards, restarts and deletion.
Not simulated: init containers, sidecars, probes, hooks, images, security contexts, limits of CPU
and memory, tokens, variables of Services, `envFrom`, `kubectl exec` and `kubectl logs`. Why there
is one beside the real kubelet of `simulator.cluster`: docs/adr/0009-node-simulator.md.
"""

from simulator.node.lifecycle import RestartPauses
from simulator.node.node import NodeOptions, SimulatedNode

__all__ = ["NodeOptions", "RestartPauses", "SimulatedNode"]
