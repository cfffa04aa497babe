"""
A real Kubernetes cluster of one node on this machine: kubelet, containerd, simulated cards.

    assets = Assets.from_environment(os.environ)
    with Cluster.start(assets, Options(cards="2xT4")) as cluster:
        cluster.kubectl("apply", "-k", "deploy/overlays/simulated")

It takes root, and Debian's packages for containers; see `needs`.
"""

from simulator.cluster.cluster import Cluster
from simulator.cluster.errors import ClusterError, ImageError, MachineError, NeedError
from simulator.cluster.options import Options

__all__ = ["Cluster", "ClusterError", "ImageError", "MachineError", "NeedError", "Options"]
