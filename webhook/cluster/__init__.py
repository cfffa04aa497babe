"""
What the webhook knows of its cluster: GPU nodes, the words of namespaces, a pod when it is bound.
"""

from webhook.cluster.live import LiveCluster
from webhook.cluster.none import NoCluster
from webhook.cluster.port import Cluster, UnknownError

__all__ = ["Cluster", "LiveCluster", "NoCluster", "UnknownError"]
