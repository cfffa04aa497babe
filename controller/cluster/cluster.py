"""
All that is known of the cluster, and how far it may be acted on: what every cluster has, and kinds
that it may have or not, now or later, owners of pods that can be scaled or stopped, and whatever
scales them.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from controller.cluster.owners import OWN_GROUP, SeenCluster, StateBuilder
from controller.cluster.projections import (
    project_agent,
    project_budget,
    project_node,
    project_owner,
    project_pod,
    project_scaler,
)
from gpufence import names
from gpufence.idle import highest_rung
from gpufence.times import Backoff
from kube import ForbiddenError, core, group
from kube.discovery import Kinds
from kube.informers import Informers, Interner, Probing, Store, is_current
from kube.informers.views import view_namespace, view_policy
from kube.owners import is_notebook, is_workload
from kube.repeating import Repeating
from kube.watch import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.projections import (
        BudgetProjection,
        OwnerProjection,
        PodProjection,
        ScaleTarget,
    )
    from controller.model import ClusterState, NodeRoom
    from controller.settings import ControllerSettings
    from gpufence.dialects import Units
    from kube import Client
    from kube.informers.views import NamespaceView
    from kube.kinds import ApiKind
    from kube.owners import ApiOwner
    from kube.watch import WatchSettings


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
        self._pods: Store[PodProjection] = Store()
        self._nodes: Store[NodeRoom] = Store()
        self._namespaces: Store[NamespaceView] = Store()
        self._policies: Store[Mapping[str, str]] = Store()
        self._agents: Store[tuple[str, str]] = Store()
        self._budgets: Store[BudgetProjection] = Store()
        interner = Interner()
        self._follow(settings.units.default, interner)
        self._follow_ours(settings.namespace)
        self._owners = FollowedKinds(self.informers, self.kinds, interner, settings.kinds_seconds)
        self._builder = StateBuilder(settings.rules, settings.exempt_namespaces)

    def _follow(self, units: Units, interner: Interner) -> None:
        """Have followed what every cluster has."""
        follow = self.informers.follow
        pods = partial(project_pod, shared=interner)
        living = {"fieldSelector": LIVING}
        of_pods = Source(path=core("pods"), keep=pods, query=living, from_cache=True)
        follow("pods", of_pods, self._pods)
        nodes = partial(project_node, units=units, shared=interner)
        follow("nodes", Source(path=core("nodes"), keep=nodes, from_cache=True), self._nodes)
        ours = partial(view_namespace, labelled=(names.MODE, names.IDLE))
        of_namespaces = Source(path=core("namespaces"), keep=ours, from_cache=True)
        follow("namespaces", of_namespaces, self._namespaces)
        budgets = group("policy/v1", "poddisruptionbudgets")
        follow("budgets", Source(path=budgets, keep=project_budget, from_cache=True), self._budgets)

    def _follow_ours(self, namespace: str) -> None:
        """Have followed the kill switch and the agents."""
        policy = partial(view_policy, keys=(names.POLICY_MAX_IDLE,))
        one = {"fieldSelector": f"metadata.name={names.POLICY_CONFIGMAP}"}
        switches = core("namespaces", namespace, "configmaps")
        of_policies = Source(path=switches, keep=policy, query=one)
        self.informers.follow("policy", of_policies, self._policies)
        labelled = {"labelSelector": AGENT_LABELS}
        pods = core("namespaces", namespace, "pods")
        of_agents = Source(path=pods, keep=project_agent, query=labelled)
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
        return self._builder.build(
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


_log = logging.getLogger(__name__)

SCALERS: Final = frozenset(
    {("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")}
)
MOST_KINDS: Final = 64
RETRY_SECONDS: Final = 2.0
_REMEDY: Final = (
    f"a ClusterRole labelled {names.AGGREGATE}=true gives the controller rights to further kinds"
)

_Name: TypeAlias = "tuple[str, str]"


class _FollowedKind(NamedTuple):
    kind: ApiKind
    store: Store[Any]

    @property
    def key(self) -> str:
        """Return the name under which the informers follow it."""
        return f"{self.kind.plural}.{self.kind.group}"


class KnownKinds(NamedTuple):
    """
    `blind` says why scaling is unknown; `unread` the same of kinds of owners that may not
    be read, `stale` of those that cannot be at the moment.
    """

    owners: Mapping[str, OwnerProjection]
    scalers: Mapping[ScaleTarget, str]
    blind: str
    unread: Mapping[_Name, str]
    stale: Mapping[_Name, str]


class FollowedKinds:
    """Has each such kind followed from when discovery tells of it until it is gone."""

    def __init__(
        self, informers: Informers, kinds: Kinds, interner: Interner, seconds: float
    ) -> None:
        self._informers = informers
        self._kinds = kinds
        self._interner = interner
        self._seconds = seconds
        self._lock = threading.Lock()
        self._followed: dict[_Name, _FollowedKind] = {}
        self._parts: list[Mapping[str, OwnerProjection]] = []
        self._merged: Mapping[str, OwnerProjection] = {}
        self._told: frozenset[_Name] = frozenset()
        self._found = False
        steady = Backoff(RETRY_SECONDS, RETRY_SECONDS)
        self._repeating = Repeating("discovery of kinds", self._turn, backoff=steady)

    def start(self) -> None:
        self._repeating.start()

    def stop(self) -> None:
        self._repeating.stop()

    @property
    def complete(self) -> bool:
        """Return whether it is known which kinds there are."""
        return self._found and not self._repeating.trouble

    def known(self) -> KnownKinds:
        with self._lock:
            # Asked before what they know is read, which then is only newer.
            unread, stale = dict(self._unread()), dict(self._stale())
            scalers: dict[ScaleTarget, str] = {}
            for name in SCALERS & self._followed.keys():
                for target, scaler in self._followed[name].store.items.values():
                    scalers[target] = f"{name[1]} {scaler}"
            return KnownKinds(
                owners=self._owners(),
                scalers=scalers,
                blind="; ".join(why for name, why in unread.items() if name in SCALERS),
                unread=unread,
                stale=stale,
            )

    def _unread(self) -> Iterator[tuple[_Name, str]]:
        for name, each in self._followed.items():
            absent = self._informers.absent(each.key)
            if isinstance(absent, ForbiddenError):
                yield name, f"{each.key} cannot be read: {absent.failure.message}; {_REMEDY}"

    def _stale(self) -> Iterator[tuple[_Name, str]]:
        now = time.monotonic()
        for name, each in self._followed.items():
            state = self._informers.state(each.key)
            there = self._informers.absent(each.key) is None
            if there and not _is_vital(name) and not is_current(state, now):
                trouble = state.last_error or "it has not been read yet"
                yield name, f"{each.key} cannot be read at the moment: {trouble}"

    def _owners(self) -> Mapping[str, OwnerProjection]:
        """Put the owners of all kinds together; the same mapping while nothing changes."""
        followed = self._followed.items()
        parts = [each.store.items for name, each in followed if name not in SCALERS]
        if len(parts) != len(self._parts) or any(map(_is_other, parts, self._parts)):
            self._parts = parts
            self._merged = {uid: kept for part in parts for uid, kept in part.items()}
        return self._merged

    def _turn(self) -> float:
        """Follow what is new, end what is gone. Raises KubeError."""
        wanted = self._wanted()
        with self._lock:
            for name, each in list(self._followed.items()):
                if wanted.get(name) != each.kind:
                    del self._followed[name]
                    self._informers.end(each.key)
            for name, kind in wanted.items():
                if name not in self._followed:
                    self._follow(name, kind)
            self._found = True
            self._tell({**dict(self._unread()), **dict(self._stale())})
            settled = all(self._informers.settled(each.key) for each in self._followed.values())
        return self._seconds if settled else min(self._seconds, RETRY_SECONDS)

    def _wanted(self) -> dict[_Name, ApiKind]:
        found = self._kinds.all(needed={group for group, _ in SCALERS})
        kinds = [kind for kind in found if _concerns(kind)]
        # Who scales, and what every cluster has, is never left out, however many kinds there are.
        kinds.sort(key=lambda kind: not _is_vital((kind.group, kind.kind)))
        return {(kind.group, kind.kind): kind for kind in kinds[:MOST_KINDS]}

    def _follow(self, name: _Name, kind: ApiKind) -> None:
        keep = partial(project_owner, kind=kind, shared=self._interner)
        source: Source[Any] = Source(
            path=kind.everywhere, keep=project_scaler if name in SCALERS else keep, from_cache=True
        )
        self._followed[name] = each = _FollowedKind(kind, Store())
        vital = _is_vital(name)
        self._informers.follow(each.key, source, each.store, optional=True, vital=vital)

    def _tell(self, unknown: Mapping[_Name, str]) -> None:
        for name in unknown.keys() - self._told:
            _log.warning("%s; their pods are left alone", unknown[name])
        self._told = frozenset(unknown)


def _is_other(one: object, other: object) -> bool:
    return one is not other


def _is_vital(name: _Name) -> bool:
    """
    Return whether nothing is decided without a kind: what scales may scale anybody, and the way up
    from anybody's pods may lead through what Kubernetes has itself.
    """
    return name in SCALERS or name[0] == OWN_GROUP


def _concerns(kind: ApiKind) -> bool:
    """
    Return whether a kind matters: of the core there are ReplicationControllers, which nobody makes
    any more.
    """
    name = kind.group, kind.kind
    scalable = kind.scalable and bool(kind.group)
    return scalable or name in SCALERS or is_notebook(kind) or is_workload(kind)
