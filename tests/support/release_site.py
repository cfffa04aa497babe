"""A cluster in accelerated time: real decisions about pods that work and rest, with faults."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agent.concerns.activity.condition import NOTHING_SAID, LastCondition, conditions
from agent.model.pod import pods_on_node
from controller.model import (
    Act,
    ClusterState,
    NodeRoom,
    OwnerKey,
    OwnerState,
    PodState,
    ReleaseRules,
    Step,
    Way,
)
from gpufence import names
from gpufence.idle import IdleRung, IdleWords
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot
from tests.support.agent.watching import POLICY
from tests.support.agent.world import LONG_SECONDS, Fault, ScriptedCard, Work
from tests.support.release import NOW, WORDS, Api, Leader, Stored, node_room, owner_key, pod_state

LOOK_SECONDS = POLICY.interval_seconds
ENDING_SECONDS = 10.0
READY_SECONDS = 10.0
ANSWER_SECONDS = 10.0
"""So old may an agent's answer be at a release; what a pod has begun since is in none."""


@dataclass
class Body:
    """
    A pod as it truly is; `active_at` is the end of the last thing it did, `active_before` of the
    last thing that it had done when its agent looked last.
    """

    name: str
    owner: OwnerKey
    made_at: float
    node: str = ""
    waiting_since: float | None = None
    ready_at: float | None = None
    ending_at: float | None = None
    active_at: float = 0.0
    active_before: float = 0.0
    idle: str = ""
    idle_at: float | None = None


class LookedAway(NamedTuple):
    """What pods have done since the last look, and for how long nobody has looked."""

    doing: Mapping[str, Work] = {}
    seconds: float = 0.0

    def after(self, doing: Mapping[str, Work]) -> "LookedAway":
        works = {name: work for name, work in self.doing.items() if work is not Work.REST}
        return LookedAway({**doing, **works}, self.seconds + LOOK_SECONDS)


class MeasuredNode:
    """A node whose one card several pods share, and the agent that watches it."""

    def __init__(self, name: str, slots: int) -> None:
        self.room: NodeRoom = node_room(name, offered={names.NVIDIA_GPU: slots}, cards=1)
        self.slots = slots
        self.bodies: dict[str, Body] = {}
        self.fault_at = 0.0
        self._scripted = ScriptedCard()
        self.card = self._scripted.watched
        self._said: Mapping[str, LastCondition] = NOTHING_SAID
        self._silent_for = 0.0
        self._unlooked = LookedAway()

    def start(self, body: Body) -> None:
        self.bodies[body.name] = body
        self._scripted.start(body.name)

    def stop(self, name: str) -> None:
        del self.bodies[name]
        self._scripted.stop(name)

    def look(self, doing: Mapping[str, Work], fault: Fault, now: float) -> None:
        """Let pods do what they do until now, and have the agent look."""
        if fault is not Fault.NONE:
            self.fault_at = now
        if fault is Fault.RESTART:
            self._said = NOTHING_SAID
        self._silent_for = self._silent_for + LOOK_SECONDS if fault is Fault.SILENT else 0.0
        unseen = 0.0 < self._silent_for <= POLICY.hidden_seconds
        for name, work in doing.items():
            if work is not Work.REST and not (unseen and work in {Work.KERNELS, Work.PASSING}):
                self.bodies[name].active_at = now
        away = self._unlooked = self._unlooked.after(doing)
        if fault is Fault.LONG_GAP and away.seconds < LONG_SECONDS:
            return
        self._unlooked = LookedAway()
        for body in self.bodies.values():
            body.active_before = body.active_at
        there = {name: work for name, work in away.doing.items() if name in self.bodies}
        self._scripted.look(there, fault, seconds=away.seconds)
        self._tell(now)

    def active_at(self, body: Body) -> float:
        """Return the end of the last thing that a look could tell of which an answer may be."""
        young = 0.0 < self._unlooked.seconds <= ANSWER_SECONDS
        return body.active_before if young else body.active_at

    def _tell(self, now: float) -> None:
        """Write the conditions that the agent writes, as the API server shows them from then on."""
        card = self.card
        changes, self._said = conditions(card.index, card.memory, self._said, POLICY, card.now)
        for change in changes:
            body = self.bodies[change.name]
            if body.idle != change.status:
                body.idle, body.idle_at = str(change.status), now
            said = replace(card.pods[change.name], idle_said=str(change.status))
            card.pods[change.name] = said
        if changes:
            card.index = pods_on_node(card.pods.values())

    def snapshot(self) -> Snapshot | None:
        """Answer as the agent does; nobody answers while it starts anew."""
        rows = []
        for name, pod in self.card.pods.items():
            track = self.card.memory.pods.get(pod.uid)
            if track is not None:
                idle = track.idle_seconds(self.card.now)
                activity = PodActivityRow(str(track.activity), idle, str(track.evidence), track.why)
                rows.append(PodRow(pod.uid, pod.namespace, name, activity=activity))
        at = "2027-01-15T08:00:00Z"
        node = self.room.node.name
        return Snapshot(
            node, "1", at, at, fresh=True, stale_seconds=self._unlooked.seconds, pods=tuple(rows)
        )


@dataclass
class Worker:
    """An owner, and what each of its pods does until a moment; a job has no rung."""

    name: str
    replicas: int
    doing: Callable[[float], Work]
    words: IdleWords = WORDS
    rung: IdleRung | None = IdleRung.RELEASE
    slots: int = 1

    @property
    def key(self) -> OwnerKey:
        return owner_key(self.name)


class Released(NamedTuple):
    """A release, and for how long all pods had truly done nothing."""

    at: float
    act: Act
    idle_seconds: float


@dataclass
class Site:
    """Nodes, owners and a leader; time goes from look to look."""

    nodes: list[MeasuredNode]
    workers: list[Worker]
    rules: ReleaseRules = field(default_factory=ReleaseRules)
    now: float = NOW
    fresh: bool = True

    def __post_init__(self) -> None:
        self.api = Api({each.key: Stored(f"uid-of-{each.name}", 1, 0) for each in self.workers})
        for each in self.workers:
            self.api.owners[each.key].replicas = each.replicas
        self.leader = Leader(self.api, self.rules)
        self.bodies: list[Body] = []
        self.released: list[Released] = []
        self._serial = 0
        self._by_key = {each.key: each for each in self.workers}

    def look(self, faults: Mapping[str, Fault] | None = None) -> None:
        """Let everybody work for one look's time; pods come and go."""
        self.now += LOOK_SECONDS
        for node in self.nodes:
            doing = {
                name: self._by_key[body.owner].doing(self.now)
                if body.ending_at is None
                else Work.REST
                for name, body in node.bodies.items()
            }
            fault = (faults or {}).get(node.room.node.name, Fault.NONE)
            node.look(doing, fault, self.now)
        self._end()
        self._make()
        self._place()

    def decide(self) -> None:
        """Let the leader make a pass, after which those whom it released are known."""
        world = self.world()
        snapshots = {node.room.node.name: node.snapshot() for node in self.nodes}
        for act in self.leader.act(world, snapshots):
            if act.step is Step.RELEASE:
                nodes = {node.room.node.name: node for node in self.nodes}
                there = [body for body in self.of(act.key) if body.node]
                idle = [self.now - nodes[body.node].active_at(body) for body in there]
                self.released.append(Released(self.now, act, min(idle)))

    def of(self, key: OwnerKey) -> list[Body]:
        return [body for body in self.bodies if body.owner == key and body.ending_at is None]

    def world(self) -> ClusterState:
        states = [self._state(body) for body in self.bodies]
        owners = {}
        for worker in self.workers:
            own = tuple(state for state in states if state.owner == worker.key)
            owners[worker.key] = self.api.seen(self._owner(worker, own))
        rooms = {node.room.node.name: node.room for node in self.nodes}
        return ClusterState(self.now, self.fresh, owners, tuple(states), rooms)

    def _owner(self, worker: Worker, pods: tuple[PodState, ...]) -> OwnerState:
        template = pod_state("more", node="", requests={names.NVIDIA_GPU: worker.slots})
        return OwnerState(
            worker.key,
            "",
            "",
            Way.SCALE,
            pods=pods,
            words=worker.words,
            rung=worker.rung,
            template=template,
        )

    def _state(self, body: Body) -> PodState:
        return pod_state(
            body.name,
            uid=f"uid-{body.name}",
            owner=body.owner,
            node=body.node,
            requests={names.NVIDIA_GPU: self._by_key[body.owner].slots},
            terminating=body.ending_at is not None,
            ready_at=body.ready_at,
            waiting_since=body.waiting_since,
            idle=body.idle,
            idle_at=body.idle_at,
        )

    def _end(self) -> None:
        nodes = {node.room.node.name: node for node in self.nodes}
        for body in list(self.bodies):
            if body.ending_at is not None and self.now >= body.ending_at:
                self.bodies.remove(body)
                if body.node:
                    nodes[body.node].stop(body.name)

    def _make(self) -> None:
        for worker in self.workers:
            wanted = self.api.owners[worker.key].replicas
            own = self.of(worker.key)
            for body in own[wanted:]:
                body.ending_at = self.now + ENDING_SECONDS
            for _ in range(wanted - len(own)):
                self._serial += 1
                self.bodies.append(Body(f"{worker.name}-{self._serial}", worker.key, self.now))

    def _place(self) -> None:
        for body in self.bodies:
            if body.node or body.ending_at is not None:
                continue
            slots = self._by_key[body.owner].slots
            node = next((each for each in self.nodes if self._free(each) >= slots), None)
            if node is None:
                body.waiting_since = body.waiting_since or self.now
                continue
            body.node, body.waiting_since = node.room.node.name, None
            body.active_at = body.active_before = self.now
            body.ready_at = self.now + READY_SECONDS
            node.start(body)

    def _free(self, node: MeasuredNode) -> int:
        taken = sum(self._by_key[body.owner].slots for body in node.bodies.values())
        return node.slots - taken


def busy(released: Iterable[Released]) -> list[str]:
    """Return the releases of owners one of whose pods had truly done something too lately."""
    return [
        f"{each.act.key.name} did something {each.idle_seconds:g} s before its release"
        for each in released
        if each.idle_seconds < each.act.threshold_seconds
    ]
