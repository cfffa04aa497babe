"""What a crowded node costs, and one where pods come and go."""

from collections import Counter
from dataclasses import replace

from agent.attribute import attribute
from agent.judge import judge
from agent.model.memory import Memory
from agent.model.pod import PodLimit, PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.sample import CardMemory, CardSample, GpuProcess, ProcessList, Sample
from agent.model.use import Observation, Occupant
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, pod, process_of
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
