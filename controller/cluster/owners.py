"""
PURE. Put together what the watches know: who owns each pod in the end, by the way up from who
controls it, how that one is released if it may be, and what people said about it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from controller.cluster.projections import ScaleTarget, least_allowed
from controller.model import ClusterState, OwnerKey, OwnerState, Way
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.idle import idle_rung, read_idle_words, read_note
from kube.owners import is_notebook, is_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.projections import BudgetProjection, OwnerProjection, PodProjection
    from controller.model import NodeRoom, PodState, ReleaseRules
    from gpufence.idle import IdleRung, IdleWords, ReleaseNote
    from kube.informers.views import NamespaceView
    from kube.owners import ApiOwner, Reference


OWN_GROUP: Final = "apps"
"""Owners that Kubernetes has itself: what is below one of them is of this group, too."""

_MOST_STEPS: Final = 8
_BY_KIND: Final = {
    "DaemonSet": "a DaemonSet has a pod on each of its nodes",
    "Job": "a Job ends by itself",
    "Node": "a static pod belongs to its node",
}


class SeenCluster(NamedTuple):
    """
    What the watches know at one moment: pods and owners by UID, the rest by name.

    `scalers` names whatever scales a target. `blind` says why it is not known what scales what;
    `unread` the same of kinds of owners that may not be read, and `stale` of those that cannot be
    read at the moment, by group and kind.
    """

    now: float
    fresh: bool
    pods: Mapping[str, PodProjection]
    owners: Mapping[str, OwnerProjection]
    nodes: Mapping[str, NodeRoom]
    namespaces: Mapping[str, NamespaceView]
    budgets: Mapping[str, BudgetProjection]
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
    kept: OwnerProjection | None
    why_not: str = ""
    leader: str = ""


class OwnerTree:
    """Which owner is above which object."""

    def __init__(self, seen: SeenCluster) -> None:
        self._seen = seen
        self._admitting = {
            (kept.owner.namespace, kept.owner.controller.uid): kept
            for kept in seen.owners.values()
            if kept.owner.controller is not None and is_workload(kept.owner.kind)
        }
        self._known: dict[tuple[str, Reference], TopOwner] = {}
        self._lost: dict[str, str] = {}
        self.budgets: dict[str, list[BudgetProjection]] = defaultdict(list)
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

    def top(self, pod: PodProjection) -> TopOwner:
        state, above = pod.state, pod.controller
        if above is None:
            key = OwnerKey(state.namespace, "v1", "Pod", state.name)
            return TopOwner(key, None, "a bare pod would not be made again")
        # A tenant may write the UID of another namespace's owner on a pod.
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
        kept: OwnerProjection | None = None
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


_Owned: TypeAlias = "dict[str, tuple[PodProjection, PodState]]"

SYSTEM_PRIORITY: Final = 2 * 10**9
"""Where the priorities of Kubernetes' own classes begin."""


class _Said(NamedTuple):
    """What was read of the annotations of an owner and its namespace."""

    owner: Mapping[str, str]
    namespace: Mapping[str, str]
    words: IdleWords
    note: ReleaseNote | None
    trouble: str


class StateBuilder:
    """Remembers what it read of each object, as long as that stays the same."""

    def __init__(self, rules: ReleaseRules, exempt_namespaces: frozenset[str]) -> None:
        self._rules = rules
        self._exempt = exempt_namespaces
        self._owned: _Owned = {}
        self._said: dict[str, _Said] = {}

    def build(self, seen: SeenCluster) -> ClusterState:
        """Return everything at one moment."""
        tree = OwnerTree(seen)
        tops: dict[OwnerKey, TopOwner] = {top.key: top for top in tree.standing()}
        pods_of: dict[OwnerKey, list[PodState]] = defaultdict(list)
        shown: list[PodState] = []
        owned: _Owned = {}
        for uid, kept in seen.pods.items():
            state = kept.state
            if state.gpu is None:
                continue
            if state.namespace in seen.namespaces:
                top = tree.top(kept)
                state = self._with_owner(uid, kept, top, owned)
                if top.why_not or top.key not in tops:
                    tops[top.key] = top
                pods_of[top.key].append(state)
            shown.append(state)
        shown += self._without_gpu(seen, tree, pods_of, owned)
        self._owned = owned
        self._said = {uid: said for uid, said in self._said.items() if uid in seen.owners}
        return ClusterState(
            now=seen.now,
            fresh=seen.fresh,
            owners={
                key: self._owner(seen, tree, top, pods_of.get(key, [])) for key, top in tops.items()
            },
            pods=tuple(shown),
            nodes=seen.nodes,
        )

    def _without_gpu(
        self,
        seen: SeenCluster,
        tree: OwnerTree,
        pods_of: dict[OwnerKey, list[PodState]],
        owned: _Owned,
    ) -> list[PodState]:
        """
        Add the pods without a GPU to those owners that have others with one; return those that take
        room on GPU nodes.
        """
        shown = []
        concerned = {key.namespace for key in pods_of}
        for uid, kept in seen.pods.items():
            state = kept.state
            if state.gpu is not None:
                continue
            if state.namespace in concerned and (top := tree.top(kept)).key in pods_of:
                state = self._with_owner(uid, kept, top, owned)
                pods_of[top.key].append(state)
            if state.node in seen.nodes:
                shown.append(state)
        return shown

    def _with_owner(self, uid: str, kept: PodProjection, top: TopOwner, owned: _Owned) -> PodState:
        """Return a pod with its owner, the same object as long as nothing of it changes."""
        known = self._owned.get(uid)
        if known is None or known[0] is not kept or not _is_of(known[1], top):
            known = kept, kept.state._replace(owner=top.key, leader=top.leader)
        owned[uid] = known
        return known[1]

    def _owner(
        self, seen: SeenCluster, tree: OwnerTree, top: TopOwner, members: list[PodState]
    ) -> OwnerState:
        pods = tuple(members)
        namespace = seen.namespaces[top.key.namespace]
        asked = idle_rung(namespace.labels)
        rung = None if asked is None else min(asked, seen.highest)
        unsure = tree.unsure(top.key)
        if top.kept is None:
            known = OwnerState(top.key, "", "", Way.NEVER, top.why_not, pods=pods, rung=rung)
            return known._replace(unsure=unsure)
        owner = top.kept.owner
        said = self._read(owner, namespace)
        way, why_not = _way(owner)
        objection = (
            unsure
            or top.why_not
            or self._exempted(top.key, pods)
            or (tree.scaled(owner) if way is Way.SCALE else "")
            or said.trouble
        )
        return OwnerState(
            key=top.key,
            uid=owner.uid,
            version=owner.version,
            way=Way.NEVER if objection else way,
            why_not=objection or why_not,
            replicas=int(owner.active) if owner.stoppable else owner.replicas,
            pods=pods,
            words=said.words,
            rung=rung,
            note=said.note,
            template=_next(top),
            budget=least_allowed(
                tree.budgets.get(top.key.namespace, ()), [seen.pods[pod.uid].labels for pod in pods]
            ),
            unsure=unsure,
        )

    def _exempted(self, key: OwnerKey, pods: tuple[PodState, ...]) -> str:
        if key.namespace in self._exempt:
            return f"namespace {key.namespace} is exempt"
        if any(pod.priority >= SYSTEM_PRIORITY for pod in pods):
            return "its priority is one of the system's own"
        return ""

    def _read(self, owner: ApiOwner, namespace: NamespaceView) -> _Said:
        known = self._said.get(owner.uid)
        texts = owner.annotations, namespace.annotations
        if known is not None and known[:2] == texts:
            return known
        words = read_idle_words(
            namespace.annotations,
            owner.annotations,
            after=self._rules.after_seconds,
            least=self._rules.least_seconds,
        )
        note, trouble = None, ""
        if names.RELEASED in owner.annotations:
            try:
                note = read_note(owner.annotations[names.RELEASED])
            except GpufenceError as error:
                trouble = f"it is left alone, since what it was is unknown: {error}"
        self._said[owner.uid] = said = _Said(*texts, words, note, trouble)
        return said


def _is_of(pod: PodState, top: TopOwner) -> bool:
    return (pod.owner, pod.leader) == (top.key, top.leader)


def _way(owner: ApiOwner) -> tuple[Way, str]:
    if is_notebook(owner.kind):
        return Way.NOTEBOOK, ""
    if is_workload(owner.kind):
        return Way.WORKLOAD, ""
    if owner.scalable:
        return Way.SCALE, ""
    return Way.NEVER, f"{owner.kind.kind} has its number of replicas where nobody reads it"


def _next(top: TopOwner) -> PodState | None:
    template = None if top.kept is None else top.kept.template
    return None if template is None else template._replace(owner=top.key)
