"""What a crowded node costs, one where pods come and go, and an owner that misbehaves all day."""

from collections import Counter
from dataclasses import replace
from itertools import count

import pytest

from agent.attribute import attribute
from agent.events.episodes import EventCreate, EventPatch
from agent.judge import judge
from agent.model.memory import Memory
from agent.model.pod import Cap, PodLimit, PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.sample import CardMemory, CardSample, GpuProcess, ProcessList, Sample
from agent.model.use import Observation, Occupant
from gpufence import names
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, controller, pod, process_of
from tests.support.agent.node import QUICK, Node, running
from tests.support.agent.world import sizes
from tests.support.builders import card
from tests.support.observing import calls

AT_ONCE = 10
SECONDS = 30.0
FILLING = 1200
"""More pods than any table has room for."""
MORE = 300
_FREE = 8
"""How many entries a table may differ by, for what one look has and the next one has not."""


def _renew(node: Node, first: int) -> None:
    """Put new pods in the place of all that are there, some over their limit, and look at them."""
    pods = [pod(f"new-{first + number}") for number in range(AT_ONCE)]
    node.api.known = pods_on_node(pods)
    node.processes.living = {
        first + number: process_of(item, first + number) for number, item in enumerate(pods)
    }
    holdings = {pid: LIMIT + GIB if pid % 5 == 0 else GIB for pid in node.processes.living}
    node.cards.held = {0: dict(holdings)}
    node.cards.workers = {0: set(holdings)}
    for _ in range(4):
        node.tick()
    node.clock.now += SECONDS
    node.api.acts.clear()


def _grown(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    return {
        place: (before[place], size)
        for place, size in after.items()
        if size > before[place] + _FREE
    }


def test_pods_that_come_and_go_leave_nothing_behind() -> None:
    """Past its bounds no table of the loop grows, however many pods there have been."""
    with running(replace(QUICK, repeated_memory_seconds=600.0)) as node:
        for first in range(1, FILLING, AT_ONCE):
            _renew(node, first)
        before = sizes(node.loop, node.worker)
        for first in range(FILLING + 1, FILLING + MORE, AT_ONCE):
            _renew(node, first)
        after = sizes(node.loop, node.worker)

    assert {} == _grown(before, after)


def test_the_walk_finds_what_is_remembered() -> None:
    """Fields in slots, in dictionaries and within other tables count; the same one counts once."""
    memory = Memory(0.0, listed={"GPU-0": 1.0, "GPU-1": 2.0})
    found = sizes(memory, memory)

    assert 2 == found["Memory.listed"]


CARDS = tuple(card(index, memory_bytes=80 * GIB) for index in range(16))
PROCESSES = 60
USED = 4 * MIB
SMALL_LIMIT = 256 * MIB
POLICY = EvictionPolicy(
    hold_seconds=3, short_hold_seconds=2, grace_seconds=0, start_pause_seconds=0
)
GREEDY = 17


class CrowdedNode:
    """So many pods, of which one holds four times its limit."""

    def __init__(self, pods: int) -> None:
        limits = {item.uuid: PodLimit(SMALL_LIMIT) for item in CARDS}
        made = [pod(f"p{number}", limits=limits) for number in range(pods)]
        self.pods = pods_on_node(made)
        self.occupants: dict[int, Occupant] = {}
        self.lists: dict[int, list[GpuProcess]] = {index: [] for index in range(len(CARDS))}
        for number, item in enumerate(made):
            self._run(number, item)
        self.memory = Memory(-10_000.0)
        self.use: Observation | None = None

    def _run(self, number: int, item: PodOnNode) -> None:
        used = 4 * SMALL_LIMIT // PROCESSES if number == GREEDY else USED
        for nth in range(PROCESSES):
            pid = 1000 + number * PROCESSES + nth
            self.occupants[pid] = process_of(item, pid)
            self.lists[number % len(CARDS)].append(GpuProcess(pid, used))

    def sample(self, now: float) -> Sample:
        memory = CardMemory(80 * GIB, 10 * GIB, 70 * GIB)
        listed = [ProcessList(now, tuple(self.lists[index])) for index in range(len(CARDS))]
        cards = (CardSample(item, memory, found) for item, found in zip(CARDS, listed, strict=True))
        return Sample(now, tuple(cards))

    def tick(self, now: float) -> list[str]:
        """Look and judge once; return which pods go."""
        self.use = attribute(self.sample(now), self.occupants, self.pods, self.use)
        decision, self.memory = judge(self.use, self.memory, POLICY, now)
        return [verdict.pod.name for verdict in decision.acts]


def test_of_300_pods_the_one_that_is_over_goes_in_time() -> None:
    """Of 300 pods with 18,000 processes the one above its limit goes after its hold, alone."""
    node = CrowdedNode(300)
    gone = {second: node.tick(second) for second in range(6)}

    assert [(3, [f"p{GREEDY}"])] == [found for found in gone.items() if found[1]][:1]
    assert {f"p{GREEDY}"} == {name for names in gone.values() for name in names}
    assert node.use is not None
    assert 18_000 == sum(len(use.processes) for use in node.use.cards.values())


def test_the_work_of_a_look_grows_with_its_processes_alone() -> None:
    """Four times the pods, of as many processes each, take four times the calls and hardly more."""
    few, many = CrowdedNode(75), CrowdedNode(300)
    for node in (few, many):
        node.tick(0)

    assert calls(lambda: many.tick(1)) < 4.5 * calls(lambda: few.tick(1))


HOUR = 3600.0
STEP = 60.0
MOST_AN_HOUR = 20
MISBEHAVED = EvictionPolicy(
    interval_seconds=STEP,
    start_pause_seconds=0.0,
    grace_seconds=0.0,
    hold_seconds=2.0,
    repeated_hold_seconds=(2.0,),
)
PATIENT = replace(MISBEHAVED, repeated_hold_seconds=EvictionPolicy().repeated_hold_seconds)


class Day:
    """Four pods of one owner on two cards, each made anew as soon as it is evicted."""

    def __init__(self, node: Node, mode: Mode) -> None:
        self.node, self.mode, self.numbers = node, mode, count(1)
        self.said: list[tuple[float, EventCreate | EventPatch]] = []
        for place in range(4):
            self.start(place)

    def start(self, place: int) -> None:
        number = next(self.numbers)
        made = pod(
            f"p{number}",
            mode=self.mode,
            controller=controller(),
            caps={"main": Cap(GIB, GIB // 2)},
            labels={"place": str(place)},
        )
        self.node.add(made, 2 * LIMIT, number, card=place % 2)

    def live(self, hours: float) -> None:
        api = self.node.api
        for _ in range(int(hours * HOUR / STEP)):
            self.node.tick(seconds=STEP)
            self.said += [(self.node.clock.now, item) for item in api.written]
            for verdict in api.acts:
                self.node.leave(verdict.pod)
                self.start(int(verdict.pod.labels["place"]))
            api.written.clear()
            api.acts.clear()

    @property
    def busiest_hour(self) -> int:
        times = [at for at, _ in self.said]
        return max(sum(at <= each < at + HOUR for each in times) for at in times)

    def about(self, kind: str) -> list[EventCreate | EventPatch]:
        return [item for _, item in self.said if item.notice.regarding.kind == kind]


@pytest.mark.parametrize(
    ("mode", "policy", "hours"),
    [(Mode.OBSERVE, MISBEHAVED, 10), (Mode.EVICT, PATIENT, 10), (Mode.EVICT, MISBEHAVED, 3)],
    ids=["stays", "evicted", "evicted-each-minute"],
)
def test_an_owner_that_misbehaves_all_day_is_written_of_twenty_times_an_hour(
    mode: Mode, policy: EvictionPolicy, hours: int
) -> None:
    """Whether its pods stay or are evicted and made anew again and again, several at once."""
    with running(policy) as node:
        day = Day(node, mode)
        day.live(hours)
        evicted = next(day.numbers) - 5

    assert MOST_AN_HOUR >= day.busiest_hour
    assert (mode is Mode.EVICT) == (evicted > 24)


def test_every_eviction_counts_on_the_owners_one_event() -> None:
    """However few are written, the owner's Event has them all, and the words of the last."""
    with running(MISBEHAVED) as node:
        day = Day(node, Mode.EVICT)
        day.live(2)
        evicted = next(day.numbers) - 5
    first, *later = day.about("ReplicaSet")

    assert isinstance(first, EventCreate)
    assert {first.serial} == {item.serial for item in later}
    assert {names.EVICTED} == {item.notice.reason for item in (first, *later)}
    assert isinstance(later[-1], EventPatch)
    assert evicted - later[-1].count < evicted / 12
    assert later[-1].notice.message != first.notice.message


def test_pods_are_written_of_beside_their_owner() -> None:
    """What befalls the first pods is on the pods themselves, each thing once."""
    with running(MISBEHAVED) as node:
        day = Day(node, Mode.EVICT)
        day.live(0.5)
    kinds = Counter(item.notice.reason for item in day.about("Pod"))

    assert {names.LIMIT_EXCEEDED, names.CAP_INEFFECTIVE, names.EVICTED} >= kinds.keys()
    assert kinds[names.EVICTED] >= 1
    assert all(isinstance(item, EventCreate) for item in day.about("Pod"))
