"""PURE. Who owns each pod in the end: the way up from who controls it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.cluster.projections import ScaleTarget
from controller.model import OwnerKey
from gpufence import names
from kube.owners import is_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.pods import KeptPod
    from controller.cluster.projections import KeptBudget, KeptOwner
    from controller.model import NodeRoom
    from gpufence.idle import IdleRung
    from kube.informers.views import NamespaceView
    from kube.owners import ApiOwner, Reference

OWN_GROUP: Final = "apps"
"""Owners that Kubernetes has itself: whoever is below one of them is of this group, too."""

_MOST_STEPS: Final = 8
_BY_KIND: Final = {
    "DaemonSet": "a DaemonSet has a pod on each of its nodes",
    "Job": "a Job ends by itself",
    "Node": "a static pod belongs to its node",
}


class SeenCluster(NamedTuple):
    """
    What the watches know at one moment: pods and owners by UID, the rest by name.

    `scalers` names whatever scales a target. `blind` says why it is not known who scales whom;
    `unread` the same of kinds of owners that may not be read, and `stale` of those that cannot be
    read at the moment, by group and kind.
    """

    now: float
    fresh: bool
    pods: Mapping[str, KeptPod]
    owners: Mapping[str, KeptOwner]
    nodes: Mapping[str, NodeRoom]
    namespaces: Mapping[str, NamespaceView]
    budgets: Mapping[str, KeptBudget]
    highest: IdleRung
    scalers: Mapping[ScaleTarget, str]
    blind: str = ""
    unread: Mapping[tuple[str, str], str] = {}
    stale: Mapping[tuple[str, str], str] = {}


class TopOwner(NamedTuple):
    """
    Where the way up from a pod ends; `kept` is None where nobody knows who that is. `leader` is the
    pod on that way that controls others.
    """

    key: OwnerKey
    kept: KeptOwner | None
    why_not: str = ""
    leader: str = ""


class OwnerTree:
    """Who is above whom."""

    def __init__(self, seen: SeenCluster) -> None:
        self._seen = seen
        self._admitting = {
            (kept.owner.namespace, kept.owner.controller.uid): kept
            for kept in seen.owners.values()
            if kept.owner.controller is not None and is_workload(kept.owner.kind)
        }
        self._known: dict[tuple[str, Reference], TopOwner] = {}
        self._lost: dict[str, str] = {}
        self.budgets: dict[str, list[KeptBudget]] = defaultdict(list)
        for budget in seen.budgets.values():
            self.budgets[budget.namespace].append(budget)

    def standing(self) -> Iterator[TopOwner]:
        """Yield those that may have no pods at the moment, and count all the same."""
        for kept in self._seen.owners.values():
            owner = kept.owner
            noted = names.RELEASED in owner.annotations
            concerned = kept.template is not None or noted
            topmost = owner.controller is None or is_workload(owner.kind)
            if concerned and topmost and owner.namespace in self._seen.namespaces:
                yield TopOwner(key_of(owner), kept)

    def top(self, pod: KeptPod) -> TopOwner:
        state, above = pod.state, pod.controller
        if above is None:
            key = OwnerKey(state.namespace, "v1", "Pod", state.name)
            return TopOwner(key, None, "nobody would make a bare pod again")
        # A tenant may write the UID of another namespace's owner on his pods.
        asked = state.namespace, above
        if asked not in self._known:
            self._known[asked] = self._climb(*asked)
        return self._known[asked]

    def scaled(self, owner: ApiOwner) -> str:
        """Say who else scales an owner."""
        if self._seen.blind:
            return self._seen.blind
        target = ScaleTarget(owner.namespace, owner.kind.group, owner.kind.kind, owner.name)
        scaler = self._seen.scalers.get(target, "")
        return f"{scaler} scales it" if scaler else ""

    def unsure(self, key: OwnerKey) -> str:
        """
        Say why not everything may be known of an owner, once the way up from all pods is known: its
        kind cannot be read at the moment, or one that may be below it and above some of its pods.
        """
        group = key.api_version.rpartition("/")[0]
        below = "" if group == OWN_GROUP else self._lost.get(key.namespace, "")
        return self._seen.stale.get((group, key.kind), "") or below

    def _climb(self, namespace: str, above: Reference) -> TopOwner:
        kept: KeptOwner | None = None
        scaled = leader = ""
        for _ in range(_MOST_STEPS):
            over = self._past_pod(namespace, above)
            above, leader = over, leader if over is above else above.uid
            higher = self._seen.owners.get(above.uid)
            if higher is None or higher.owner.namespace != namespace:
                break
            if kept is not None:
                scaled = scaled or self._among_scaled(kept.owner)
            kept = higher
            if kept.owner.controller is None:
                break
            above = kept.owner.controller
        if kept is None or kept.owner.uid != above.uid:
            kept = self._admitting.get((namespace, above.uid))
            if kept is None:
                key = OwnerKey(namespace, above.api_version, above.kind, above.name)
                return TopOwner(key, None, self._unknown(namespace, above), leader)
        elif not kept.owner.stoppable and not kept.owner.kind.scalable:
            kept = self._admitting.get((namespace, kept.owner.uid), kept)
        return TopOwner(key_of(kept.owner), kept, scaled, leader)

    def _past_pod(self, namespace: str, above: Reference) -> Reference:
        """Return who controls a pod that controls others, as the leader of a group does."""
        pod = self._seen.pods.get(above.uid)
        if pod is None or pod.controller is None or pod.state.namespace != namespace:
            return above
        return pod.controller

    def _among_scaled(self, owner: ApiOwner) -> str:
        target = ScaleTarget(owner.namespace, owner.kind.group, owner.kind.kind, owner.name)
        scaler = self._seen.scalers.get(target, "")
        return f"{scaler} scales {owner.kind.kind} {owner.name} below it" if scaler else ""

    def _unknown(self, namespace: str, above: Reference) -> str:
        kind = above.api_version.rpartition("/")[0], above.kind
        stale = self._seen.stale.get(kind, "")
        if stale:
            self._lost[namespace] = stale
        usual = f"{above.kind} {above.name} owns it, which cannot be scaled"
        return stale or self._seen.unread.get(kind) or _BY_KIND.get(above.kind) or usual


def key_of(owner: ApiOwner) -> OwnerKey:
    return OwnerKey(owner.namespace, owner.kind.api_version, owner.kind.kind, owner.name)
