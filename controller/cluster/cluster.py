"""All that is known of the cluster, and how far it may be acted on."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.cluster.kinds import FollowedKinds
from controller.cluster.owners import Assembler
from controller.cluster.pods import keep_pod
from controller.cluster.projections import keep_agent, keep_budget, keep_node
from controller.cluster.tree import SeenCluster
from gpufence import names
from gpufence.idle import highest_rung
from kube import Source, core, group
from kube.discovery import Kinds
from kube.informers import Informers, Interner, Probing, Store
from kube.informers.views import view_namespace, view_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.pods import KeptPod
    from controller.cluster.projections import KeptBudget
    from controller.model import ClusterState, NodeRoom
    from controller.settings import ControllerSettings
    from gpufence.dialects import Units
    from kube import Client, WatchSettings
    from kube.informers.views import NamespaceView
    from kube.owners import ApiOwner

LIVING: Final = "status.phase!=Succeeded,status.phase!=Failed"
AGENT_LABELS: Final = "app.kubernetes.io/name=gpufence-agent"
MOST_AHEAD_SECONDS: Final = 30.0
"""
A clock that differs more from the API server's, in either direction, is wrong, or the API server's
is: by it nothing is done.
"""


class WatchTrust(NamedTuple):
    """Whether what is known may be acted on, and what stands against it."""

    fresh: bool
    trouble: str


class Cluster:
    """
    Follows what decides, and puts together what is seen; `client` speaks as the controller's own
    account. Others may have more followed by its `informers`.
    """

    def __init__(
        self, client: Client, settings: ControllerSettings, pace: WatchSettings | None = None
    ) -> None:
        self._client = client
        self.kinds = Kinds(client, remembered_seconds=settings.kinds_seconds / 2)
        self.informers = Informers(
            client, pace, probing=Probing(absent_seconds=settings.kinds_seconds)
        )
        self._given = dict(settings.agents)
        self._pods: Store[KeptPod] = Store()
        self._nodes: Store[NodeRoom] = Store()
        self._namespaces: Store[NamespaceView] = Store()
        self._policies: Store[Mapping[str, str]] = Store()
        self._agents: Store[tuple[str, str]] = Store()
        self._budgets: Store[KeptBudget] = Store()
        interner = Interner()
        self._follow(settings.units.default, interner)
        self._follow_ours(settings.namespace)
        self._owners = FollowedKinds(self.informers, self.kinds, interner, settings.kinds_seconds)
        self._assembler = Assembler(settings.rules, settings.exempt_namespaces)

    def _follow(self, units: Units, interner: Interner) -> None:
        """Have followed what every cluster has."""
        follow = self.informers.follow
        pods = partial(keep_pod, shared=interner)
        living = {"fieldSelector": LIVING}
        of_pods = Source(path=core("pods"), keep=pods, query=living, from_cache=True)
        follow("pods", of_pods, self._pods)
        nodes = partial(keep_node, units=units, shared=interner)
        follow("nodes", Source(path=core("nodes"), keep=nodes, from_cache=True), self._nodes)
        ours = partial(view_namespace, labelled=(names.MODE, names.IDLE))
        of_namespaces = Source(path=core("namespaces"), keep=ours, from_cache=True)
        follow("namespaces", of_namespaces, self._namespaces)
        budgets = group("policy/v1", "poddisruptionbudgets")
        follow("budgets", Source(path=budgets, keep=keep_budget, from_cache=True), self._budgets)

    def _follow_ours(self, namespace: str) -> None:
        """Have followed the kill switch and the agents."""
        policy = partial(view_policy, keys=(names.POLICY_MAX_IDLE,))
        one = {"fieldSelector": f"metadata.name={names.POLICY_CONFIGMAP}"}
        switches = core("namespaces", namespace, "configmaps")
        of_policies = Source(path=switches, keep=policy, query=one)
        self.informers.follow("policy", of_policies, self._policies)
        labelled = {"labelSelector": AGENT_LABELS}
        pods = core("namespaces", namespace, "pods")
        of_agents = Source(path=pods, keep=keep_agent, query=labelled)
        self.informers.follow("agents", of_agents, self._agents)

    def start(self) -> None:
        self.informers.start()
        self._owners.start()

    def stop(self) -> None:
        self._owners.stop()
        self.informers.stop()

    def look(self) -> ClusterState:
        """Return everything as it is known now; one thread at a time."""
        # Asked before the parts are read: what comes in between is only newer. And after what is
        # known of kinds, of which one may just have been begun anew.
        fresh = self.trust().fresh
        known = self._owners.known()
        fresh = fresh and self.trust().fresh
        return self._assembler.assemble(
            SeenCluster(
                now=time.time(),
                fresh=fresh,
                pods=self._pods.items,
                owners=known.owners,
                nodes=self._nodes.items,
                namespaces=self._namespaces.items,
                budgets=self._budgets.items,
                highest=highest_rung(self._policies.items.get(names.POLICY_CONFIGMAP)),
                scalers=known.scalers,
                blind=known.blind,
                unread=known.unread,
                stale=known.stale,
            )
        )

    def namespaces(self) -> Mapping[str, NamespaceView]:
        """Return what namespaces say to us, of those that do."""
        return self._namespaces.items

    def owners(self) -> Iterator[ApiOwner]:
        """Yield the owners of kinds that can be scaled or stopped."""
        return (kept.owner for kept in self._owners.known().owners.values())

    def agents(self) -> Mapping[str, str]:
        """Return the address of each node's agent."""
        if self._given:
            return self._given
        found = self._agents.items.values()
        return {node: f"http://{_shown(address)}:8080" for node, address in found}

    def trust(self) -> WatchTrust:
        health, complete = self.informers.health(), self._owners.complete
        wrong = _clock_trouble(self._client.clock_ahead_seconds)
        missing = "" if complete else "it is not known which kinds there are"
        said = [health.trouble, missing, wrong]
        return WatchTrust(
            health.fresh and complete and not wrong, "; ".join(text for text in said if text)
        )


def _shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _clock_trouble(ahead_seconds: float | None) -> str:
    """Say that this machine's clock or the API server's is wrong; nothing where they agree."""
    if ahead_seconds is None or abs(ahead_seconds) <= MOST_AHEAD_SECONDS:
        return ""
    where = "ahead of" if ahead_seconds > 0 else "behind"
    return (
        f"this machine's clock is {abs(ahead_seconds):.0f} s {where} the API server's, so no time "
        "can be trusted: set both by the same time server"
    )
