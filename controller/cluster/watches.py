"""
What is always watched: pods and their budgets, nodes, namespaces, the kill switch, the agents.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from controller.cluster.budgets import keep_budget
from controller.cluster.kept import (
    keep_agent,
    keep_namespace,
    keep_node,
    keep_policy,
)
from controller.cluster.pods import keep_pod
from gpufence import names
from kube import Reflector, Source, core, group
from kube.informers.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.cluster.budgets import KeptBudget
    from controller.cluster.kept import NamespaceWords
    from controller.cluster.pods import KeptPod
    from controller.model import NodeRoom
    from gpufence.dialects import Units
    from kube import Client, ReflectorState, WatchSettings
    from kube.informers.interning import Interner

LIVING: Final = "status.phase!=Succeeded,status.phase!=Failed"
OUTAGE_SECONDS: Final = 5.0
"""A watch that keeps failing for longer than this makes what is known stale."""
SILENCE_SECONDS: Final = 120.0
"""The same for one on which nothing comes: quiet watches are opened anew after 75 seconds."""
AGENT_LABELS: Final = "app.kubernetes.io/name=gpufence-agent"


class ClusterWatches:
    """Six collections, each followed on a thread of its own."""

    def __init__(
        self, client: Client, namespace: str, units: Units, shared: Interner, pace: WatchSettings
    ) -> None:
        self.pods: Store[KeptPod] = Store()
        self.nodes: Store[NodeRoom] = Store()
        self.namespaces: Store[NamespaceWords] = Store()
        self.policies: Store[Mapping[str, str]] = Store()
        self.agents: Store[tuple[str, str]] = Store()
        self.budgets: Store[KeptBudget] = Store()
        of_ours = core("namespaces", namespace, "configmaps")
        policy = {"fieldSelector": f"metadata.name={names.POLICY_CONFIGMAP}"}
        agents = {"labelSelector": AGENT_LABELS}
        sources: tuple[tuple[Store[Any], Source[Any]], ...] = (
            (
                self.pods,
                Source(
                    path=core("pods"),
                    keep=partial(keep_pod, shared=shared),
                    query={"fieldSelector": LIVING},
                    from_cache=True,
                ),
            ),
            (
                self.nodes,
                Source(
                    path=core("nodes"),
                    keep=partial(keep_node, units=units, shared=shared),
                    from_cache=True,
                ),
            ),
            (
                self.namespaces,
                Source(path=core("namespaces"), keep=keep_namespace, from_cache=True),
            ),
            (
                self.budgets,
                Source(
                    path=group("policy/v1", "poddisruptionbudgets"),
                    keep=keep_budget,
                    from_cache=True,
                ),
            ),
            (self.policies, Source(path=of_ours, keep=keep_policy, query=policy)),
            (
                self.agents,
                Source(path=core("namespaces", namespace, "pods"), keep=keep_agent, query=agents),
            ),
        )
        self._reflectors = tuple(
            Reflector(client, source, store, pace) for store, source in sources
        )

    def start(self) -> None:
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        for reflector in self._reflectors:
            reflector.stop()

    def states(self) -> tuple[ReflectorState, ...]:
        return tuple(reflector.state for reflector in self._reflectors)


def is_current(state: ReflectorState, now: float) -> bool:
    """Return whether what a watch knows may be acted on, at a moment of the monotonic clock."""
    return state.is_fresh(now, OUTAGE_SECONDS, SILENCE_SECONDS)
