"""A node in memory: cards, processes and an API server behind the agent's ports."""

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from agent.concern import Concern, Concerns
from agent.concerns.activity import ActivityConcern
from agent.concerns.activity.model import ActivityPolicy
from agent.concerns.capped import CappedConcern
from agent.concerns.driver.concern import DriverConcern
from agent.concerns.driver.label import NodeLabel
from agent.concerns.driver.model import DriverPolicy
from agent.concerns.need import NeedConcern
from agent.concerns.need.model import NeedPolicy, StoredNeed
from agent.concerns.repeated import RepeatedConcern
from agent.concerns.shown.concern import ShownConcern, ShownPolicy
from agent.events.episodes import EventCreate, EventPatch
from agent.loop import Loop, Ports, Rules, Worker
from agent.model.decision import ActResult, Answer, Verdict
from agent.model.pod import Cap, PodCondition, PodOnNode, PodsOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.sample import NO_TROUBLE, CardWork, ProcessList, Sample, Trouble
from agent.model.state import About, AgentState, ClusterStatus, Identity
from agent.model.use import CpuTime, Occupant
from agent.nvml.protocol import Answer as NvmlAnswer
from agent.nvml.protocol import Question
from gpufence.cards import NodeCards
from gpufence.mode import Mode
from gpufence.need import NodeNeed
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, card_sample, controller, occupant, pod, process_of
from tests.support.observing import eventually

QUICK = EvictionPolicy(start_pause_seconds=0.0, grace_seconds=0.0, hold_seconds=2.0)


@dataclass
class Clock:
    """Moves only when told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Cards:
    """
    `held` is what each PID holds on each card, `workers` who works there, where that is known;
    `slow_seconds` is what a look takes.

    `list_seconds` is what it takes to list the processes of a card: one after the other, the card
    whose list is the oldest first, and in one look no more than fit into its `deadline_seconds`.
    """

    clock: Clock
    held: dict[int, dict[int, int | None]] = field(default_factory=lambda: {0: {}})
    trouble: Trouble = NO_TROUBLE
    driver: str = "580"
    slow_seconds: float = 0.0
    error: Exception | None = None
    asked: list[frozenset[str]] = field(default_factory=list)
    closed: bool = False
    workers: dict[int, set[int]] = field(default_factory=dict)
    measured_at: float | None = None
    list_seconds: dict[int, float] = field(default_factory=dict)
    deadline_seconds: float = 5.0
    lists: dict[int, ProcessList | None] = field(default_factory=dict)

    def sample(self, suspects: frozenset[str]) -> Sample:
        self.asked.append(suspects)
        if self.error is not None:
            raise self.error
        at = self.clock.now
        self.clock.now += self.slow_seconds
        held = self.held
        since = at if self.measured_at is None else self.measured_at
        self.measured_at = at
        if self.list_seconds:
            self._list(at + self.deadline_seconds)
        else:
            self.lists = {index: card_sample(index, held[index], at=at).processes for index in held}
        cards = tuple(
            replace(
                card_sample(index, held[index], at=at),
                processes=None if self.trouble else self.lists[index],
                work=self._work(index, since, at),
            )
            for index in held
        )
        return Sample(at, cards, self.driver, self.trouble)

    def _list(self, until: float) -> None:
        def listed_at(index: int) -> float:
            listed = self.lists.get(index)
            return 0.0 if listed is None else listed.listed_at

        for index in sorted(self.held, key=listed_at):
            seconds = self.list_seconds.get(index, 0.0)
            if self.clock.now + seconds > until:
                break
            listed = card_sample(index, self.held[index], at=self.clock.now).processes
            self.lists[index] = listed
            self.clock.now += seconds

    def _work(self, index: int, since: float, until: float) -> CardWork | None:
        workers = self.workers.get(index)
        return None if workers is None else CardWork(since, until, 0.0, dict.fromkeys(workers, 1.0))

    def close(self) -> None:
        self.closed = True


@dataclass
class Processes:
    living: dict[int, Occupant] = field(default_factory=dict)
    cpu: dict[int, float] = field(default_factory=dict)
    asked: list[set[int]] = field(default_factory=list)
    cpu_asked: list[set[int]] = field(default_factory=list)
    error: Exception | None = None

    def occupants(self, pids: Iterable[int]) -> dict[int, Occupant]:
        wanted = set(pids)
        self.asked.append(wanted)
        return {pid: item for pid, item in self.living.items() if pid in wanted}

    def look(self, pid: int) -> Occupant | None:
        return self.living.get(pid)

    def cpu_times(self, pids: Iterable[int]) -> dict[int, CpuTime]:
        pids = set(pids)
        self.cpu_asked.append(pids)
        if self.error is not None:
            raise self.error
        return {
            pid: CpuTime(self.living[pid].started_ticks, self.cpu.get(pid, 0.0))
            for pid in pids
            if pid in self.living
        }


@dataclass
class ApiServer:
    """Answers every act alike, once it is `open`."""

    known: PodsOnNode = field(default_factory=lambda: pods_on_node(()))
    result: ActResult = field(default_factory=lambda: ActResult(Answer.ACCEPTED))
    acts: list[Verdict] = field(default_factory=list)
    written: list[EventCreate | EventPatch] = field(default_factory=list)
    said: list[PodCondition] = field(default_factory=list)
    published: list[NodeCards] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None

    def pods(self) -> PodsOnNode:
        return self.known

    def publish(self, cards: NodeCards) -> None:
        self.published.append(cards)

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        self.written += writes

    def say(self, conditions: Iterable[PodCondition]) -> None:
        self.said += conditions

    def carry_out(self, verdict: Verdict) -> ActResult:
        self.acts.append(verdict)
        self.open.wait(20)
        if self.error is not None:
            raise self.error
        return self.result

    @property
    def reasons(self) -> list[str]:
        return [item.notice.reason for item in self.written]


class Node:
    """All of it, and the loop that looks after it."""

    def __init__(self, policy: EvictionPolicy = QUICK) -> None:
        self.clock = Clock()
        self.cards = Cards(self.clock)
        self.processes = Processes()
        self.api = ApiServer()
        self.api.open.set()
        self.killed: list[Verdict] = []
        self.worker = WatchedWorker(self.api.carry_out, self._kill, self.clock, policy.gap_seconds)
        self.concerns = Concerns(self.shelves())
        ports = Ports(self.cards, self.processes, self.api, self.clock, timestamp)
        self.loop = Loop(ports, Rules(node="n1", policy=policy), self.worker, self.concerns)

    def shelves(self) -> Sequence[Concern]:
        """Return what is looked after beside the fence: nothing, for who tests the fence."""
        return ()

    def add(self, pod: PodOnNode, used: int | None, pid: int, card: int = 0) -> None:
        """Start a pod of one process."""
        self.claim(pod)
        self.processes.living[pid] = process_of(pod, pid)
        self.cards.held.setdefault(card, {})[pid] = used

    def claim(self, pod: PodOnNode) -> None:
        """Start a pod without a process on a card."""
        others = [item for item in self.api.known.by_uid.values() if item.uid != pod.uid]
        self.api.known = pods_on_node([*others, pod])

    def leave(self, pod: PodOnNode) -> None:
        """Take a pod away with its processes."""
        others = [item for item in self.api.known.by_uid.values() if item.uid != pod.uid]
        self.api.known = pods_on_node(others)
        owned = [pid for pid, item in self.processes.living.items() if _is_of(item, pod)]
        for pid in owned:
            del self.processes.living[pid]
            for held in self.cards.held.values():
                held.pop(pid, None)

    def tick(self, times: int = 1, seconds: float = 1.0) -> None:
        """Tick, and let every act that was handed over begin before the clock moves on."""
        for _ in range(times):
            self.clock.now += seconds
            self.loop.tick()
            assert eventually(self._has_begun)

    def _has_begun(self) -> bool:
        begun = {id(item) for item in (*self.api.acts, *self.killed)}
        waiting = [item for item in self.worker.outstanding if id(item) not in begun]
        return not waiting or self.worker.answered

    def tick_until_acted(self, acts: int = 1, most: int = 30) -> None:
        """Tick until so many acts were handed over and answered."""
        for _ in range(most):
            if len(self.api.acts) + len(self.killed) >= acts:
                break
            self.tick()
            assert eventually(lambda: self.worker.answered)
        else:
            raise AssertionError(f"nobody was acted on: {self.loop.state}")

    def _kill(self, verdict: Verdict) -> ActResult:
        self.killed.append(verdict)
        return ActResult(Answer.ACCEPTED)


class WatchedWorker(Worker):
    """A worker of which a test may ask whether its acts have ended."""

    @property
    def answered(self) -> bool:
        return self._finished.qsize() == len(self._outstanding)


def _is_of(process: Occupant, pod: PodOnNode) -> bool:
    return process.owner is not None and process.owner.pod_uid == pod.uid


def timestamp() -> str:
    return "2026-01-02"


@contextmanager
def running(policy: EvictionPolicy = QUICK, node: Node | None = None) -> Iterator[Node]:
    """Make a node whose agent can act, or take one."""
    node = node or Node(policy)
    try:
        yield node
    finally:
        node.api.open.set()
        node.worker.close(20)


NOTHING_STORED = StoredNeed(NodeNeed("n1"))


@dataclass
class Stored:
    """What was `found` of needs, and what has been stored since."""

    found: StoredNeed | None = NOTHING_STORED
    needs: list[NodeNeed] = field(default_factory=list)
    running: bool = False

    def start(self) -> None:
        self.running = True

    def store(self, need: NodeNeed) -> None:
        self.needs.append(need)

    def stop(self) -> None:
        self.running = False


class NoNvml:
    """Knows no limits."""

    def ask(self, questions: Collection[Question]) -> dict[Question, NvmlAnswer | Trouble]:
        return dict.fromkeys(questions, Trouble("nobody to ask"))

    def rest(self) -> None: ...


class ConcernedNode(Node):
    """`stored` is what is kept for the next agent."""

    def shelves(self) -> Sequence[Concern]:
        self.stored = Stored()
        self.activity = ActivityConcern(ActivityPolicy(), self.processes, self.clock)
        self.need = NeedConcern(NeedPolicy(), "n1", self.stored, self.clock, timestamp)
        policy = DriverPolicy(cgroup_root="/nowhere")
        label = NodeLabel(None, "keep")
        self.driver = DriverConcern(policy, "n1", NoNvml(), label, self.clock)
        self.shown = ShownConcern(ShownPolicy())
        capped = CappedConcern(lambda: f"{timestamp()}T00:00:00Z")
        return self.activity, self.need, self.driver, self.shown, RepeatedConcern(), capped


STATUS = ClusterStatus(
    synced=True,
    fresh=True,
    silence_seconds=12.5,
    highest=Mode.EVICT,
    identity=Identity.IMPERSONATING,
    published=True,
    events_written=7,
    events_dropped=2,
    events_refused=1,
)
ABOUT = About("gpu-1", "1.2.3", "2026-01-02T03:04:05Z", 3.0, STATUS, restarts=4)


def busy_state(ground: Node | None = None) -> AgentState:
    """Return what is known after a violator has gone, with others in every state still there."""
    with running(node=ground) as node:
        node.add(pod("greedy", controller=controller()), LIMIT + 300 * MIB, 1)
        node.add(pod("good", caps={"main": Cap(2 * GIB, 512 * MIB)}), GIB, 2)
        node.tick_until_acted()
        node.tick()
        del node.cards.held[0][1]
        node.add(pod("capped", mode=Mode.CAP, namespace="team-b"), LIMIT + 100 * MIB, 3)
        node.add(pod("quiet", mode=Mode.OBSERVE), None, 4, card=1)
        node.add(pod("free", mode=None, limit=None, namespace="team-c"), GIB, 5, card=2)
        node.cards.held[2][99] = 512 * MIB
        node.processes.living[99] = occupant(99, None, None, command='Xorg "x"')
        node.tick(3)
        return node.loop.state


def blinded(state: AgentState) -> AgentState:
    """Return the same with its second card lost at the last look."""
    last = state.last
    assert last is not None
    seen = last.observation
    first, second, *rest = seen.sample.cards
    lost = replace(second, memory=None, processes=None, trouble=Trouble("it fell off the bus"))
    cards = dict(seen.cards)
    cards[second.card.uuid] = replace(
        cards[second.card.uuid], memory=None, listed_at=None, processes=(), unattributed_bytes=None
    )
    sample = replace(
        seen.sample, cards=(first, lost, *rest), unidentified=(Trouble("index 3: no access"),)
    )
    blind = replace(seen, sample=sample, cards=cards)
    return replace(state, last=replace(last, observation=blind))
