"""
The API server as far as the agent needs it: pods, words, the kill switch, evictions, Events, cards.
"""

from agent.cluster.live import AgentCluster
from agent.cluster.settings import ClusterSettings, Impersonation

__all__ = ["AgentCluster", "ClusterSettings", "Impersonation"]
