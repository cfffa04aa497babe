"""
A card that is watched: pods work, load, compute and vanish by script, and a driver answers about it
every few seconds with all its manners.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from agent.attribute import attribute
from agent.concerns.activity.model import (
    NO_ACTIVITY,
    ActivityMemory,
    ActivityPolicy,
    PodTrack,
    Track,
    Witness,
)
from agent.concerns.activity.watch import pids_to_read, strangers, watched
from agent.model.pod import PodOnNode, PodsOnNode, pods_on_node
from agent.model.sample import CardWork, Sample, Trouble
from agent.model.use import CpuTime, Observation, Occupant
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS, card_sample, occupant, pod, process_of
from tests.support.builders import T4_BYTES

POLICY = ActivityPolicy()
UUID = CARDS[0].uuid


@dataclass
class Watched:
    """
    One card, looked at every `POLICY.interval_seconds`.

    `holds` is what each PID holds, `cpu` what it has used of the CPU; `living` are all processes
    there are, those on no list included, and of the `silent` ones the kernel does not say what they
    used. While the driver is `slow`, the last list stays.
    """

    pods: dict[str, PodOnNode] = field(default_factory=dict)
    living: dict[int, Occupant] = field(default_factory=dict)
    holds: dict[int, int | None] = field(default_factory=dict)
    cpu: dict[int, float] = field(default_factory=dict)
    mps: set[int] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)
    slow: bool = False
    listed_at: float = 0.0
    shown: dict[int, int | None] = field(default_factory=dict)
    now: float = 1000.0
    listed: bool = True
    answers: bool = True
    until: float | None = None
    memory: ActivityMemory = NO_ACTIVITY
    observation: Observation | None = None
    index: PodsOnNode = field(default_factory=lambda: pods_on_node(()))

    def add(self, name: str, pid: int, used: int | None = GIB, **more: Any) -> Self:
        """Start a pod of one process."""
        self.pods[name] = pod(name, **more)
        self.index = pods_on_node(self.pods.values())
        return self.start(name, pid).hold(pid, used)

    def claim(self, name: str, **more: Any) -> Self:
        """Start a pod that was given a GPU and has no process on a card."""
        self.pods[name] = pod(name, claims=True, **more)
        self.index = pods_on_node(self.pods.values())
        return self

    def start(self, name: str, pid: int) -> Self:
        """Start a process that is on no list yet."""
        self.living[pid] = process_of(self.pods[name], pid)
        return self

    def stranger(self, pid: int, used: int) -> Self:
        """Start a process of the node itself."""
        self.living[pid] = occupant(pid, None, None)
        return self.hold(pid, used)

    def hold(self, pid: int, used: int | None) -> Self:
        self.holds[pid] = used
        return self

    def let_go(self, name: str, pid: int) -> Self:
        """Have the last process of a pod that was given the card leave it."""
        del self.holds[pid]
        self.pods[name] = replace(self.pods[name], claims=True)
        self.index = pods_on_node(self.pods.values())
        return self

    def set(self, **more: object) -> Self:
        for name, value in more.items():
            setattr(self, name, value)
        return self

    def pass_(
        self,
        workers: Iterable[int] | Mapping[int, float] | None = (),
        *,
        percent: float = 0.0,
        seconds: float = POLICY.interval_seconds,
        garbled: bool = False,
        hole: bool = False,
    ) -> Self:
        """Let time pass, in which these processes worked, and look."""
        self.now += seconds
        work = None
        if self.answers:
            since = self.now if self.until is None or hole else self.until
            done = _shares(workers)
            work = CardWork(since, self.now, percent, done, garbled)
        self.until = self.now if self.answers else None
        self.look(work)
        return self

    def look(self, work: CardWork | None) -> None:
        if not self.slow:
            self.shown, self.listed_at = dict(self.holds), self.now
        held = self.shown if self.listed else None
        used = sum(amount or 0 for amount in self.holds.values())
        free = T4_BYTES - used
        sample = card_sample(0, held, at=self.listed_at, mps=self.mps, free=free)
        trouble = Trouble("" if work else "the driver cannot tell")
        sample = replace(sample, work=work, work_trouble=trouble)
        known = {pid: item for pid, item in self.living.items() if pid in self.shown}
        self.observation = attribute(
            Sample(self.now, (sample,)), known, self.index, self.observation
        )
        wanted = pids_to_read(self.observation, self.memory)
        unknown = strangers(self.observation, self.memory)
        witness = Witness(
            self.now,
            {
                pid: CpuTime(self.living[pid].started_ticks, self.cpu.get(pid, 0.0))
                for pid in wanted
                if pid in self.living and pid not in self.silent
            },
            {pid: self.living[pid] for pid in unknown if pid in self.living},
        )
        self.memory = watched(self.observation, witness, self.memory, policy=POLICY, now=self.now)

    def restart_agent(self) -> Self:
        """Forget everything, as a new agent and its new child do."""
        return self.set(memory=NO_ACTIVITY, until=None, observation=None)

    def settle(self, times: int = 3, percent: float = 0.0) -> Self:
        """Look so often while no process is seen to work."""
        for _ in range(times):
            self.pass_(percent=percent)
        return self

    def track(self, name: str) -> Track:
        return self.memory.tracks[self.pods[name].uid, UUID]

    def has(self, name: str) -> bool:
        """Return whether anything is remembered of a pod."""
        return self.pods[name].uid in self.memory.pods

    def whole(self, name: str) -> PodTrack:
        """Return what a pod does on all cards together."""
        return self.memory.pods[self.pods[name].uid]

    def state(self, name: str) -> tuple[str, str]:
        """Return what a pod does, and why one thinks so."""
        track = self.track(name)
        return str(track.activity), str(track.evidence)

    def idle_seconds(self, name: str) -> float | None:
        return self.track(name).idle_seconds(self.now)


def _shares(workers: Iterable[int] | Mapping[int, float] | None) -> Mapping[int, float] | None:
    if workers is None or isinstance(workers, Mapping):
        return workers
    return dict.fromkeys(workers, 1.0)
