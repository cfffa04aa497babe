"""
PURE. Put together what the watches know: who owns each pod in the end, how that one is released if
it may be, and what people said about it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from controller.cluster.projections import least_allowed
from controller.cluster.tree import OwnerTree, SeenCluster, TopOwner
from controller.model import ClusterState, OwnerKey, OwnerState, Way
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.idle import idle_rung, read_idle_words, read_note
from kube.owners import is_notebook, is_workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.cluster.pods import KeptPod
    from controller.model import PodState
    from controller.rules import ReleaseRules
    from gpufence.idle import IdleWords, ReleaseNote
    from kube.informers.views import NamespaceView
    from kube.owners import ApiOwner

_Owned: TypeAlias = "dict[str, tuple[KeptPod, PodState]]"

SYSTEM_PRIORITY: Final = 2 * 10**9
"""Where the priorities of Kubernetes' own classes begin."""


class _Said(NamedTuple):
    """What was read of the annotations of an owner and its namespace."""

    owner: Mapping[str, str]
    namespace: Mapping[str, str]
    words: IdleWords
    note: ReleaseNote | None
    trouble: str


class Assembler:
    """Remembers what it read of whom, as long as that stays the same."""

    def __init__(self, rules: ReleaseRules, exempt_namespaces: frozenset[str]) -> None:
        self._rules = rules
        self._exempt = exempt_namespaces
        self._owned: _Owned = {}
        self._said: dict[str, _Said] = {}

    def assemble(self, seen: SeenCluster) -> ClusterState:
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

    def _with_owner(self, uid: str, kept: KeptPod, top: TopOwner, owned: _Owned) -> PodState:
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
                trouble = f"it is left alone, since nobody can tell what it was: {error}"
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
