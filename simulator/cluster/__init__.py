"""
A real Kubernetes cluster of one node on this machine: kubelet, containerd, simulated cards.

    assets = Assets.from_environment(os.environ)
    with SimulatedCluster.start(assets, ClusterOptions(cards="2xT4")) as cluster:
        cluster.kubectl("apply", "-k", "deploy/overlays/simulated")

It takes root, and Debian's packages for containers; see `needs`.
"""

from simulator.cluster.cluster import SimulatedCluster
from simulator.cluster.setup import ClusterOptions

__all__ = ["ClusterOptions", "SimulatedCluster"]
