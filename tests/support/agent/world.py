"""A node on a fake clock: pods hold memory by script, and the agent looks once a second."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final, NamedTuple, Self

from agent.attribute import attribute
from agent.judge import judge, objection, settle
from agent.model.decision import ActResult, Answer, Decision, Outcome, Verdict
from agent.model.memory import Memory
from agent.model.pod import PodOnNode, PodsOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.sample import ProcessList, Sample
from agent.model.use import MPS_SERVER, Observation, Occupant
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import card_sample, occupant, process_of
from tests.support.agent.watching import POLICY, Watched
from tests.support.builders import T4_BYTES

LONG_AGO = -10_000.0
MPS_PID = 50


class Act(NamedTuple):
    """Who had to go, when, and how."""

    second: int
    pod: str
    action: str = "evict"


@dataclass
class World:
    """
    `holds` is what each pod holds, by name, container and card; None: the driver does not say.
    `unlisted` are cards whose list of processes is unknown. `free` overrides a card's free memory,
    None where the card does not say. Lists are old unless `renewed`; where they are `slow`, a new
    one comes after so many seconds. On cards in `mps` everybody is
    a client of the node's MPS server. `began` is when a pod's processes started, by its name. An
    eviction accepted and `ignored` has no effect. `idle` says for how long pods have done nothing.
    """

    policy: EvictionPolicy = field(default_factory=EvictionPolicy)
    pods: dict[str, PodOnNode] = field(default_factory=dict)
    holds: dict[tuple[str, str, int], int | None] = field(default_factory=dict)
    strangers: dict[int, tuple[int, int]] = field(default_factory=dict)
    unlisted: set[int] = field(default_factory=set)
    free: dict[int, int | None] = field(default_factory=dict)
    mps: set[int] = field(default_factory=set)
    answer: Answer = Answer.ACCEPTED
    leaves_after: int = 5
    answers_after: int = 0
    reachable: bool = True
    renewed: bool = True
    slow: int = 0
    ignored: bool = False
    now: int = 0
    cards: int = 2
    began: dict[str, float] = field(default_factory=dict)
    started_at: float = LONG_AGO
    idle: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory = Memory(self.started_at)
        self.use: Observation | None = None
        self.decision: Decision
        self.acts: list[Act] = []
        self.leaving: dict[str, int] = {}
        self.outstanding: list[tuple[Verdict, int]] = []
        self.pids: dict[tuple[str, str], int] = {}
        self.last_pid = 100
        self.indexed: tuple[object, PodsOnNode] | None = None
        self.due: dict[int, list[Callable[[], object]]] = {}
        self.script: Callable[[World, int], object] = lambda _world, _second: None
        self.lists: dict[int, ProcessList | None] = {}

    def add(self, pod: PodOnNode, used: int | None = 0, *, card: int = 0) -> Self:
        """Start a pod whose first container holds so much."""
        self.pods[pod.name] = pod
        return self.hold(pod.name, used, card=card)

    def hold(self, name: str, used: int | None, *, card: int = 0, container: str = "main") -> Self:
        if name in self.pods:
            self.holds[name, container, card] = used
        return self

    def change(self, name: str, **more: object) -> Self:
        if name in self.pods:
            self.pods[name] = replace(self.pods[name], **more)  # type: ignore[arg-type] # any field
        return self

    def set(self, **more: object) -> Self:
        for name, value in more.items():
            setattr(self, name, value)
        return self

    def remember(self, **more: object) -> Self:
        self.memory = replace(self.memory, **more)  # type: ignore[arg-type] # any field
        return self

    def at(self, second: int, do: str, *words: object, **more: object) -> Self:
        """Have one of the other things done right before the look of that second."""
        self.due.setdefault(second, []).append(lambda: getattr(self, do)(*words, **more))
        return self

    def each(self, script: Callable[[World, int], object]) -> Self:
        """Have something done right before each look."""
        self.script = script
        return self

    def restart(self, name: str) -> None:
        """Give a pod new processes."""
        self.pids = {key: pid for key, pid in self.pids.items() if key[0] != name}

    def remove(self, name: str) -> None:
        self.pods.pop(name, None)
        self.leaving.pop(name, None)
        self.holds = {key: used for key, used in self.holds.items() if key[0] != name}

    def settle_in(self) -> Self:
        """Let everybody be known and past the grace when second 0 comes."""
        self.now = -1
        self.tick()
        pods = {
            uid: replace(item, first_seen_at=LONG_AGO) for uid, item in self.memory.pods.items()
        }
        self.memory = replace(self.memory, pods=pods)
        self.now = 0
        return self

    def run(self, until: int) -> list[Act]:
        """Look once a second up to and without `until`."""
        while self.now < until:
            for do in self.due.pop(self.now, ()):
                do()
            self.script(self, self.now)
            self.tick()
            self.now += 1
        return self.acts

    def tick(self) -> None:
        self._leave()
        pods = self._index()
        self.use = self.look(pods)
        self._settle()
        outstanding = [item for item, _ in self.outstanding]
        self.decision, self.memory = judge(
            self.use, self.memory, self.policy, self.now, outstanding
        )
        for verdict in self.decision.acts:
            lending = self.decision.lending
            assert "" == objection(verdict, self.use, self.policy, self.now, lending=lending)
            self.acts.append(Act(self.now, verdict.pod.name, str(verdict.action)))
            self.outstanding.append((verdict, self.now + self.answers_after))
        self._settle()

    def _settle(self) -> None:
        """Let the API server answer the acts whose time has come."""
        due = [item for item, at in self.outstanding if at <= self.now]
        self.outstanding = [(item, at) for item, at in self.outstanding if at > self.now]
        for verdict in due:
            self.memory = settle(
                self.memory, verdict, ActResult(self.answer), self.policy, self.now
            )
            if self.answer is Answer.ACCEPTED and not self.ignored:
                self.leaving[verdict.pod.name] = self.now

    def look(self, pods: PodsOnNode) -> Observation:
        occupants: dict[int, Occupant] = {}
        held: dict[int, dict[int, int | None]] = {index: {} for index in range(self.cards)}
        for (name, container, index), used in self.holds.items():
            if (name, container) not in self.pids:
                self.last_pid += 1
            pid = self.pids.setdefault((name, container), self.last_pid)
            held[index][pid] = used
            began = self.began.get(name, -500.0)
            occupants[pid] = process_of(self.pods[name], pid, container, started=began)
        for pid, (index, used) in self.strangers.items():
            held[index][pid] = used
        for index in self.mps:
            occupants[MPS_PID + index] = occupant(MPS_PID + index, None, None, command=MPS_SERVER)
            held[index][MPS_PID + index] = 0
        samples = []
        for index in range(self.cards):
            known = None if index in self.unlisted else held[index]
            sum_used = sum(used or 0 for used in held[index].values())
            free = self.free.get(index, T4_BYTES - sum_used)
            at = self.now if self.renewed else self.now - 1
            clients = held[index] if index in self.mps else ()
            sample = card_sample(index, known, at=at, free=free, mps=clients)
            kept = self.lists.get(index) if index not in self.unlisted else None
            if kept is not None and self.now - kept.listed_at < self.slow:
                sample = replace(sample, processes=kept)
            self.lists[index] = sample.processes
            samples.append(replace(sample, memory=None) if free is None else sample)
        sample_of_all = Sample(self.now, tuple(samples))
        seen = attribute(sample_of_all, occupants, pods, self.use)
        idle = {self.pods[name].uid: each for name, each in self.idle.items() if name in self.pods}
        return replace(seen, idle=idle) if idle else seen

    def outcomes(self, name: str) -> list[Outcome]:
        return [item.outcome for item in self.decision.verdicts if item.pod.name == name]

    def outcome(self, name: str) -> Outcome:
        (found,) = self.outcomes(name)
        return found

    def _index(self) -> PodsOnNode:
        """Return the same index until something changes, as the API server's watches do."""
        known = (tuple(self.pods.values()), self.reachable)
        if self.indexed is None or self.indexed[0] != known:
            self.indexed = known, pods_on_node(self.pods.values(), fresh=self.reachable)
        return self.indexed[1]

    def _leave(self) -> None:
        """Let the API server say so a second after an eviction, and the pod go in its time."""
        for name, since in list(self.leaving.items()):
            if self.now >= since + self.leaves_after:
                self.remove(name)
            else:
                self.change(name, terminating=True)


STRANGER: Final = 9
"""The node's own process, which holds next to nothing."""
LONG_SECONDS: Final = 30.0


class Work(Enum):
    """What a pod truly does between two looks."""

    REST = auto()
    KERNELS = auto()
    LOADING = auto()
    COMPUTING = auto()
    CHILD = auto()  # a new process of it works, and stays
    PASSING = auto()  # a process of it comes, works and goes
    SILENT = auto()  # kernels of which the driver tells no process


class Fault(Enum):
    """What happens to those who watch a card."""

    NONE = auto()
    HOLE = auto()
    NO_ANSWER = auto()
    UNLISTED = auto()
    SLOW_LIST = auto()
    ZOMBIES = auto()
    MPS = auto()
    RESTART = auto()
    LONG_GAP = auto()
    SILENT = auto()  # the driver tells of no process, while the card is busy


NAMELESS: Final = frozenset({Fault.HOLE, Fault.RESTART, Fault.ZOMBIES, Fault.SILENT})
"""The answer does not name those who worked."""


class ScriptedCard:
    """
    `server` is the pod whose process is MPS's server where there is one, else the node's own is.
    """

    def __init__(self, server: str = "") -> None:
        self.watched = Watched()
        self.watched.living[STRANGER] = occupant(STRANGER, None, None)
        self.watched.holds[STRANGER] = MIB
        self._server = server
        self._pids: dict[str, list[int]] = {}
        self._last_pid = 100

    def start(self, name: str) -> None:
        """Start a pod of one process."""
        self._last_pid += 1
        self._pids[name] = [self._last_pid]
        self.watched.add(name, self._last_pid)

    def claim(self, name: str) -> None:
        """Start a pod that was given the card and has no process on it."""
        self._pids[name] = []
        self.watched.claim(name)

    def stop(self, name: str) -> None:
        for pid in self._pids.pop(name):
            self.watched.living.pop(pid, None)
            self.watched.holds.pop(pid, None)
        del self.watched.pods[name]
        self.watched.index = pods_on_node(self.watched.pods.values())

    def look(
        self,
        doing: Mapping[str, Work],
        fault: Fault,
        *,
        node_works: bool = False,
        seconds: float | None = None,
    ) -> None:
        """Let pods do what they do, the node's own process too, and look after so long."""
        if seconds is None:
            long = fault is Fault.LONG_GAP
            seconds = LONG_SECONDS if long else POLICY.interval_seconds
        workers = {pid for name, work in doing.items() for pid in self._do(name, work)}
        workers |= {STRANGER} if node_works else set()
        percent = 80.0 if workers or Work.SILENT in doing.values() else 0.0
        watched, mps = self.watched, fault is Fault.MPS
        if fault is Fault.RESTART:
            watched.restart_agent()
        watched.answers = fault is not Fault.NO_ANSWER
        watched.listed = fault is not Fault.UNLISTED
        watched.slow = fault is Fault.SLOW_LIST
        watched.mps = {self._pids[self._server][0] if self._server else STRANGER} if mps else set()
        if workers and mps:
            workers = watched.mps  # whoever it works for
        watched.pass_(
            () if fault in NAMELESS else workers,
            percent=percent,
            seconds=seconds,
            garbled=fault is Fault.ZOMBIES,
            hole=fault is Fault.HOLE,
        )

    def _do(self, name: str, work: Work) -> list[int]:
        """Return the processes that the driver may name."""
        card, pids = self.watched, self._pids[name]
        if work is Work.KERNELS:
            return pids[:1]
        if work is Work.LOADING:
            held = card.holds[pids[0]] or 0
            card.holds[pids[0]] = held + (64 * MIB if held < 2 * GIB else -64 * MIB)
        elif work is Work.COMPUTING:
            card.cpu[pids[0]] = card.cpu.get(pids[0], 0.0) + 1.5
        elif work in {Work.CHILD, Work.PASSING}:
            self._last_pid += 1
            if work is Work.CHILD:
                card.start(name, self._last_pid)
                card.holds[self._last_pid] = MIB
                pids.append(self._last_pid)
            return [self._last_pid]
        return []


_OURS = ("agent.", "gpufence.", "kube.")


def sizes(*roots: object) -> Counter[str]:
    """Return how many entries each field of our classes holds, those of tables within included."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    waiting = [(type(root).__name__, root) for root in roots]
    while waiting:
        place, item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Mapping):
            found[place] += len(item)
            waiting += [(f"{place}[]", each) for pair in item.items() for each in pair]
        elif isinstance(item, tuple | list | set | frozenset | deque):
            found[place] += len(item)
            waiting += [(f"{place}[]", each) for each in item]
        elif type(item).__module__.startswith(_OURS):
            waiting += [(f"{type(item).__name__}.{name}", each) for name, each in _fields(item)]
    return found


def _fields(item: object) -> Iterator[tuple[str, object]]:
    yield from getattr(item, "__dict__", {}).items()
    for kind in type(item).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(item, name):
                yield name, getattr(item, name)
