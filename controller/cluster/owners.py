"""
PURE. Put together what the watches know: who owns each pod in the end, how that one is released if
it may be, and what people said about it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.cluster.kept import Target
from controller.model import ClusterState, OwnerKey, OwnerState, Way
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.idle import idle_rung, read_idle_words, read_note
from kube.owners import is_notebook, is_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.cluster.kept import KeptOwner, NamespaceWords
    from controller.cluster.pods import KeptPod
    from controller.model import NodeRoom, PodState
    from controller.rules import ReleaseRules
    from gpufence.idle import IdleRung, IdleWords, ReleaseNote
    from kube.owners import ApiOwner, Reference

SYSTEM_PRIORITY: Final = 2 * 10**9
"""
Where the priorities of Kubernetes' own classes begin.
"""
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
    `unread` the same of kinds of owners, by group and kind.
    """

    now: float
    fresh: bool
    pods: Mapping[str, KeptPod]
    owners: Mapping[str, KeptOwner]
    nodes: Mapping[str, NodeRoom]
    namespaces: Mapping[str, NamespaceWords]
    highest: IdleRung
    scalers: Mapping[Target, str]
    blind: str = ""
    unread: Mapping[tuple[str, str], str] = {}


class _Top(NamedTuple):
    """
    Where the way up from a pod ends; `kept` is None where nobody knows who that is.
    """

    key: OwnerKey
    kept: KeptOwner | None
    why_not: str = ""


class _Said(NamedTuple):
    """
    What was read of the annotations of an owner and its namespace.
    """

    owner: Mapping[str, str]
    namespace: Mapping[str, str]
    words: IdleWords
    note: ReleaseNote | None
    trouble: str


class Assembler:
    """
    Remembers what it read of whom, as long as that stays the same.
    """

    def __init__(self, rules: ReleaseRules, exempt_namespaces: frozenset[str]) -> None:
        self._rules = rules
        self._exempt = exempt_namespaces
        self._owned: dict[str, tuple[KeptPod, OwnerKey, PodState]] = {}
        self._said: dict[str, _Said] = {}

    def assemble(self, seen: SeenCluster) -> ClusterState:
        """
        Return everything at one moment.
        """
        tree = _Tree(seen)
        tops: dict[OwnerKey, _Top] = {top.key: top for top in tree.standing()}
        pods_of: dict[OwnerKey, list[PodState]] = defaultdict(list)
        shown: list[PodState] = []
        owned = {}
        for uid, kept in seen.pods.items():
            state = kept.state
            if state.gpu is None:
                if state.node in seen.nodes:
                    shown.append(state)
                continue
            if state.namespace in seen.namespaces:
                top = tree.top(kept)
                owned[uid] = found = self._with_owner(uid, kept, top.key)
                state = found[2]
                tops.setdefault(top.key, top)
                pods_of[top.key].append(state)
            shown.append(state)
        self._owned = owned
        self._said = {uid: said for uid, said in self._said.items() if uid in seen.owners}
        return ClusterState(
            now=seen.now,
            fresh=seen.fresh,
            owners={
                key: self._owner(seen, tree, top, tuple(pods_of.get(key, ())))
                for key, top in tops.items()
            },
            pods=tuple(shown),
            nodes=seen.nodes,
        )

    def _with_owner(
        self, uid: str, kept: KeptPod, key: OwnerKey
    ) -> tuple[KeptPod, OwnerKey, PodState]:
        known = self._owned.get(uid)
        if known is not None and known[0] is kept and known[1] == key:
            return known
        return kept, key, kept.state._replace(owner=key)

    def _owner(
        self, seen: SeenCluster, tree: _Tree, top: _Top, pods: tuple[PodState, ...]
    ) -> OwnerState:
        namespace = seen.namespaces[top.key.namespace]
        asked = idle_rung(namespace.labels)
        rung = None if asked is None else min(asked, seen.highest)
        if top.kept is None:
            return OwnerState(top.key, "", "", Way.NEVER, top.why_not, pods=pods, rung=rung)
        owner = top.kept.owner
        said = self._read(owner, namespace)
        way, why_not = _way(owner)
        objection = (
            top.why_not
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
        )

    def _exempted(self, key: OwnerKey, pods: tuple[PodState, ...]) -> str:
        if key.namespace in self._exempt:
            return f"namespace {key.namespace} is exempt"
        if any(pod.priority >= SYSTEM_PRIORITY for pod in pods):
            return "its priority is one of the system's own"
        return ""

    def _read(self, owner: ApiOwner, namespace: NamespaceWords) -> _Said:
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


class _Tree:
    """
    Who is above whom.
    """

    def __init__(self, seen: SeenCluster) -> None:
        self._seen = seen
        self._admitting = {
            kept.owner.controller.uid: kept
            for kept in seen.owners.values()
            if kept.owner.controller is not None and is_workload(kept.owner.kind)
        }
        self._known: dict[Reference, _Top] = {}

    def standing(self) -> Iterator[_Top]:
        """
        Yield those that may have no pods at the moment, and count all the same.
        """
        for kept in self._seen.owners.values():
            owner = kept.owner
            noted = names.RELEASED in owner.annotations
            concerned = kept.template is not None or noted
            topmost = owner.controller is None or is_workload(owner.kind)
            if concerned and topmost and owner.namespace in self._seen.namespaces:
                yield _Top(_key(owner), kept)

    def top(self, pod: KeptPod) -> _Top:
        state, above = pod.state, pod.controller
        if above is None:
            key = OwnerKey(state.namespace, "v1", "Pod", state.name)
            return _Top(key, None, "nobody would make a bare pod again")
        if above not in self._known:
            self._known[above] = self._climb(state.namespace, above)
        return self._known[above]

    def scaled(self, owner: ApiOwner) -> str:
        """
        Say who else scales an owner.
        """
        if self._seen.blind:
            return self._seen.blind
        target = Target(owner.namespace, owner.kind.group, owner.kind.kind, owner.name)
        scaler = self._seen.scalers.get(target, "")
        return f"{scaler} scales it" if scaler else ""

    def _climb(self, namespace: str, above: Reference) -> _Top:
        kept: KeptOwner | None = None
        scaled = ""
        for _ in range(_MOST_STEPS):
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
            kept = self._admitting.get(above.uid)
            if kept is None:
                key = OwnerKey(namespace, above.api_version, above.kind, above.name)
                return _Top(key, None, self._unknown(above))
        elif not kept.owner.stoppable and not kept.owner.kind.scalable:
            kept = self._admitting.get(kept.owner.uid, kept)
        return _Top(_key(kept.owner), kept, scaled)

    def _among_scaled(self, owner: ApiOwner) -> str:
        target = Target(owner.namespace, owner.kind.group, owner.kind.kind, owner.name)
        scaler = self._seen.scalers.get(target, "")
        return f"{scaler} scales {owner.kind.kind} {owner.name} below it" if scaler else ""

    def _unknown(self, above: Reference) -> str:
        kind = above.api_version.rpartition("/")[0], above.kind
        usual = f"{above.kind} {above.name} owns it, which cannot be scaled"
        return self._seen.unread.get(kind) or _BY_KIND.get(above.kind) or usual


def _way(owner: ApiOwner) -> tuple[Way, str]:
    if is_notebook(owner.kind):
        return Way.NOTEBOOK, ""
    if is_workload(owner.kind):
        return Way.WORKLOAD, ""
    if owner.scalable:
        return Way.SCALE, ""
    return Way.NEVER, f"{owner.kind.kind} has its number of replicas where nobody reads it"


def _next(top: _Top) -> PodState | None:
    template = None if top.kept is None else top.kept.template
    return None if template is None else template._replace(owner=top.key)


def _key(owner: ApiOwner) -> OwnerKey:
    return OwnerKey(owner.namespace, owner.kind.api_version, owner.kind.kind, owner.name)
