"""
The API server as far as the agent needs it: pods, namespaces, the kill switch, evictions, Events,
cards.
"""

from agent.cluster.cluster import AgentCluster
from agent.cluster.settings import ClusterSettings, Impersonation

__all__ = ["AgentCluster", "ClusterSettings", "Impersonation"]
