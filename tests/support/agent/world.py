"""
A node on a fake clock: pods hold memory by script, the agent's deciding half looks once a second.

Only the shell is missing: who is to be evicted is told an answer and leaves when the test says so.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agent.attribute import attribute
from agent.judge import judge, objection, settle
from agent.model.decision import ActResult, Answer, Decision, Outcome, Verdict
from agent.model.memory import Memory
from agent.model.pod import PodOnNode, PodsOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.sample import ProcessList, Sample
from agent.model.use import MPS_SERVER, Observation, Occupant
from tests.support.agent.builders import card_sample, occupant, process_of
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
    eviction accepted and `ignored` has no effect.
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
        self.due: dict[int, list[Callable[[], None]]] = {}
        self.lists: dict[int, ProcessList | None] = {}

    def add(self, pod: PodOnNode, used: int | None = 0, *, card: int = 0) -> None:
        """Start a pod whose first container holds so much."""
        self.pods[pod.name] = pod
        self.hold(pod.name, used, card=card)

    def hold(self, name: str, used: int | None, *, card: int = 0, container: str = "main") -> None:
        if name in self.pods:
            self.holds[name, container, card] = used

    def change(self, name: str, **more: object) -> None:
        self.pods[name] = replace(self.pods[name], **more)  # type: ignore[arg-type] # any field

    def at(self, second: int, do: Callable[..., None], *words: object, **more: object) -> None:
        """Have something done right before the look of that second."""
        self.due.setdefault(second, []).append(lambda: do(*words, **more))

    def restart(self, name: str) -> None:
        """Give a pod new processes."""
        self.pids = {key: pid for key, pid in self.pids.items() if key[0] != name}

    def remove(self, name: str) -> None:
        self.pods.pop(name, None)
        self.leaving.pop(name, None)
        self.holds = {key: used for key, used in self.holds.items() if key[0] != name}

    def settle_in(self) -> None:
        """Let everybody be known and past the grace when second 0 comes."""
        self.now = -1
        self.tick()
        pods = {
            uid: replace(item, first_seen_at=LONG_AGO) for uid, item in self.memory.pods.items()
        }
        self.memory = replace(self.memory, pods=pods)
        self.now = 0

    def run(self, until: int, script: Callable[[int], None] | None = None) -> list[Act]:
        """Look once a second up to and without `until`; before each look the script has its say."""
        while self.now < until:
            for do in self.due.pop(self.now, ()):
                do()
            if script is not None:
                script(self.now)
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
            assert "" == objection(verdict, self.use, self.policy, self.now)
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
        return attribute(sample_of_all, occupants, pods, self.use)

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
