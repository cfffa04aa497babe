"""A node of 16 cards with 300 pods, each of which has 60 processes."""

from agent.attribute import attribute
from agent.judge import judge
from agent.model.memory import Memory
from agent.model.pod import PodLimit, PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.sample import CardMemory, CardSample, GpuProcess, ProcessList, Sample
from agent.model.use import Observation, Occupant
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import pod, process_of
from tests.support.builders import card
from tests.support.counting import calls

CARDS = tuple(card(index, memory_bytes=80 * GIB) for index in range(16))
PROCESSES = 60
USED = 4 * MIB
LIMIT = 256 * MIB
POLICY = EvictionPolicy(
    hold_seconds=3, short_hold_seconds=2, grace_seconds=0, start_pause_seconds=0
)
GREEDY = 17


class Node:
    """So many pods, of which one holds four times its limit."""

    def __init__(self, pods: int) -> None:
        limits = {item.uuid: PodLimit(LIMIT) for item in CARDS}
        made = [pod(f"p{number}", limits=limits) for number in range(pods)]
        self.pods = pods_on_node(made)
        self.occupants: dict[int, Occupant] = {}
        self.lists: dict[int, list[GpuProcess]] = {index: [] for index in range(len(CARDS))}
        for number, item in enumerate(made):
            self._run(number, item)
        self.memory = Memory(-10_000.0)
        self.use: Observation | None = None

    def _run(self, number: int, item: PodOnNode) -> None:
        used = 4 * LIMIT // PROCESSES if number == GREEDY else USED
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
    node = Node(300)
    gone = {second: node.tick(second) for second in range(6)}

    assert [(3, [f"p{GREEDY}"])] == [found for found in gone.items() if found[1]][:1]
    assert {f"p{GREEDY}"} == {name for names in gone.values() for name in names}
    assert node.use is not None
    assert 18_000 == sum(len(use.processes) for use in node.use.cards.values())


def test_the_work_of_a_look_grows_with_its_processes_alone() -> None:
    """Four times the pods, of as many processes each, take four times the calls and hardly more."""
    few, many = Node(75), Node(300)
    for node in (few, many):
        node.tick(0)

    assert calls(lambda: many.tick(1)) < 4.5 * calls(lambda: few.tick(1))
