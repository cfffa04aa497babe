"""
What the webhook knows of its cluster: GPU nodes, the words of namespaces, a pod when it is bound.
"""

from webhook.cluster.live import LiveCluster
from webhook.cluster.none import WithoutCluster
from webhook.cluster.port import ClusterView, UnknownError

__all__ = ["ClusterView", "LiveCluster", "UnknownError", "WithoutCluster"]
