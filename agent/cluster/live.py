"""
The real cluster behind `agent.ports.Cluster`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cluster.status import ClusterStatus
from agent.model.pod import pods_on_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.cluster.settings import ClusterSettings
    from agent.events import Create, Patch
    from agent.judge import Result
    from agent.model.decision import Verdict
    from agent.model.pod import PodsOnNode
    from gpufence.cards import NodeCards
    from kube import Client


class AgentCluster:
    """
    Watches, writes and evicts; `client` speaks as the agent's own account.
    """

    def __init__(self, client: Client, settings: ClusterSettings) -> None:
        self._client = client
        self._settings = settings
        self._pods = pods_on_node((), fresh=False)

    def start(self) -> None:
        """
        Begin to watch, publish and write on threads of our own; returns at once.
        """

    def close(self) -> None:
        """
        End all threads, within a few seconds; Events that wait get their last chance.
        """

    def status(self) -> ClusterStatus:
        return ClusterStatus()

    def pods(self) -> PodsOnNode:
        return self._pods

    def publish(self, cards: NodeCards) -> None:
        raise NotImplementedError

    def write(self, writes: Iterable[Create | Patch]) -> None:
        raise NotImplementedError

    def carry_out(self, verdict: Verdict) -> Result:
        raise NotImplementedError
