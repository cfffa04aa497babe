"""Owners of GPU pods as the controller decides on them, and an API server that releases them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.decide import decide, last_look, refused, released, why_not
from controller.model import (
    Act,
    ClusterState,
    NodeRoom,
    OwnerKey,
    OwnerState,
    PodState,
    ReleaseDecision,
    ReleaseMemory,
    ReleaseRules,
    Step,
    Way,
)
from gpufence import names
from gpufence.cards import Card
from gpufence.dialects import Units
from gpufence.idle import IdleRung, IdleWords, ReleaseNote, read_note, write_note
from gpufence.nodes import GpuNode
from gpufence.pods import read_pod
from gpufence.quantity import GIB
from gpufence.snapshot import Snapshot
from tests.support.builders import card, container, pod

NOW = 1_800_000_000.0
WORDS = IdleWords(after_seconds=900.0, contended_seconds=60.0)


def owner_key(name: str = "worker", namespace: str = "team-a") -> OwnerKey:
    return OwnerKey(namespace, "apps/v1", "Deployment", name)


def pod_state(
    name: str = "worker-0",
    *,
    namespace: str = "team-a",
    owner: OwnerKey | None = None,
    node: str = "node-1",
    requests: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
    limits: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    **changes: Any,
) -> PodState:
    """Build a running pod that has one card, of which nobody has said yet what it does."""
    asked = {names.NVIDIA_GPU: 1} if requests is None else dict(requests)
    shown = asked if limits is None else dict(limits)
    written = pod(
        container(**{key: str(value) for key, value in shown.items()}),
        annotations=annotations,
        nodeName=node,
        **(spec or {}),
    )
    state = PodState(
        uid=f"uid-of-{name}",
        namespace=namespace,
        name=name,
        owner=owner,
        node=node,
        phase="Running" if node else "Pending",
        priority=0,
        requests=asked | {"pods": 1},
        gpu=read_pod(written),
        ready_at=NOW - 86400 if node else None,
    )
    return state._replace(**changes)


def idle_pod(name: str = "worker-0", *, minutes: float = 30.0, **changes: Any) -> PodState:
    """Build a pod that has done nothing for so long, as its condition says since a minute later."""
    at = NOW - 60.0 * minutes + 60.0
    values: dict[str, Any] = {"idle": "True", "idle_at": at}
    return pod_state(name, **(values | changes))


def waiting_pod(name: str = "job-0", *, seconds: float = 120.0, **changes: Any) -> PodState:
    """Build a pod that no node has taken for so long."""
    values: dict[str, Any] = {"namespace": "team-b", "node": "", "waiting_since": NOW - seconds}
    return pod_state(name, **(values | changes))


def owner_state(
    *pods: PodState, name: str = "worker", namespace: str = "team-a", **changes: Any
) -> OwnerState:
    """Build a Deployment that may be released, with as many replicas as it has pods."""
    key = owner_key(name, namespace)
    state = OwnerState(
        key=key,
        uid=f"uid-of-{name}",
        version="7",
        way=Way.SCALE,
        replicas=len(pods),
        pods=tuple(item._replace(owner=key, namespace=namespace) for item in pods),
        words=WORDS,
        rung=IdleRung.RELEASE,
        template=pod_state(f"{name}-template", namespace=namespace, node="", owner=key),
    )
    return state._replace(**changes)


def node_room(
    name: str = "node-1",
    *,
    offered: Mapping[str, int] | None = None,
    cards: int = 2,
    card_bytes: int = 16 * GIB,
    labels: Mapping[str, str] | None = None,
    units: Units | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    unschedulable: bool = False,
    own_cards: tuple[Card, ...] | None = None,
) -> NodeRoom:
    """Build a node that offers whole cards, or what is said."""
    allocatable = {names.NVIDIA_GPU: cards} if offered is None else dict(offered)
    each = tuple(card(index, memory_bytes=card_bytes) for index in range(cards))
    node = GpuNode(
        name=name,
        labels=dict(labels or {}),
        resources=frozenset(allocatable),
        cards=each if own_cards is None else own_cards,
        units=units or Units(),
    )
    return NodeRoom(node, {"pods": 110} | allocatable, tuple(taints), unschedulable)


def cluster(
    *owners: OwnerState,
    pods: Iterable[PodState] = (),
    nodes: Iterable[NodeRoom] | None = None,
    now: float = NOW,
    fresh: bool = True,
) -> ClusterState:
    """Build a cluster of these owners with their pods, and of pods that are nobody's here."""
    rooms = [node_room()] if nodes is None else list(nodes)
    return ClusterState(
        now=now,
        fresh=fresh,
        owners={item.key: item for item in owners},
        pods=(*(each for item in owners for each in item.pods), *pods),
        nodes={item.node.name: item for item in rooms},
    )


def noted(owner: OwnerState, note: ReleaseNote, replicas: int = 0) -> OwnerState:
    """Return an owner with a note, and with as many replicas; without pods where it has none."""
    return owner._replace(note=note, replicas=replicas, pods=owner.pods[:replicas])


class ConflictError(Exception):
    """Raised where somebody else has changed the owner since."""


@dataclass
class Stored:
    uid: str
    version: int
    replicas: int
    note: str = ""


@dataclass(frozen=True)
class Scaling:
    key: OwnerKey
    before: int
    after: int
    note: str
    by: str


@dataclass
class Api:
    """Owners with their versions, and all that was done to their replicas."""

    owners: dict[OwnerKey, Stored] = field(default_factory=dict)
    scalings: list[Scaling] = field(default_factory=list)

    def scale(self, key: OwnerKey, uid: str, version: str, replicas: int) -> str:
        stored = self._checked(key, uid, version)
        self._log(key, replicas, "controller")
        stored.replicas = replicas
        return self._changed(stored)

    def annotate(self, key: OwnerKey, uid: str, version: str, note: ReleaseNote | None) -> str:
        stored = self._checked(key, uid, version)
        stored.note = "" if note is None else write_note(note)
        return self._changed(stored)

    def scale_by_hand(self, key: OwnerKey, replicas: int) -> None:
        stored = self.owners[key]
        if stored.replicas != replicas:
            self._log(key, replicas, "somebody")
            stored.replicas = replicas
            self._changed(stored)

    def seen(self, owner: OwnerState) -> OwnerState:
        """Return an owner as it is now."""
        stored = self.owners[owner.key]
        note = read_note(stored.note) if stored.note else None
        return owner._replace(
            uid=stored.uid, version=str(stored.version), replicas=stored.replicas, note=note
        )

    def _checked(self, key: OwnerKey, uid: str, version: str) -> Stored:
        stored = self.owners[key]
        if (stored.uid, str(stored.version)) != (uid, version):
            raise ConflictError
        return stored

    def _changed(self, stored: Stored) -> str:
        stored.version += 1
        return str(stored.version)

    def _log(self, key: OwnerKey, replicas: int, by: str) -> None:
        stored = self.owners[key]
        self.scalings.append(Scaling(key, stored.replicas, replicas, stored.note, by))


@dataclass
class Leader:
    """One controller that believes it leads."""

    api: Api
    rules: ReleaseRules = field(default_factory=ReleaseRules)
    memory: ReleaseMemory = field(default_factory=ReleaseMemory)
    decision: ReleaseDecision | None = None

    def decide(self, world: ClusterState) -> tuple[Act, ...]:
        self.decision = decide(world, self.memory, self.rules)
        self.memory = self.decision.memory
        return self.decision.acts

    def steps(
        self, act: Act, world: ClusterState, snapshots: Mapping[str, Snapshot | None] | None
    ) -> Iterator[str]:
        """Carry an act out, call by call; without snapshots the agents agree."""
        if act.step is Step.RELEASE and snapshots is not None:
            look = last_look(world.owners[act.key], snapshots)
            against = why_not(look, act.threshold_seconds)
            if against:
                self.memory = refused(self.memory, act.key, against, world.now)
                return
        if act.step is Step.ANNOUNCE:
            return
        try:
            version = self.api.annotate(act.key, act.uid, act.version, act.note)
            yield "noted"
            if act.replicas is not None:
                version = self.api.scale(act.key, act.uid, version, act.replicas)
                if act.step is Step.RELEASE:
                    self.memory = released(self.memory, act.key, world.now)
                yield "scaled"
                self.api.annotate(act.key, act.uid, version, act.done)
                yield "done"
        except ConflictError:
            return

    def forget(self) -> None:
        """Begin as a new leader does."""
        self.memory = ReleaseMemory()

    def act(
        self, world: ClusterState, snapshots: Mapping[str, Snapshot | None] | None = None
    ) -> list[Act]:
        """Make a whole pass; return the acts that came to their end."""
        finished = []
        for act in self.decide(world):
            done = list(self.steps(act, world, snapshots))
            if act.step is Step.ANNOUNCE or done:
                finished.append(act)
        return finished
