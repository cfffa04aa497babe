"""The node in memory with all that the agent looks after beside the fence."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.concern import Concern
from agent.concerns.activity import ActivityConcern
from agent.concerns.activity.model import ActivityPolicy, IdleCondition
from agent.concerns.need import NeedConcern
from agent.concerns.need.model import NeedPolicy, StoredNeed
from gpufence.need import NodeNeed
from tests.support.agent.node import Node, timestamp

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


class ConcernedNode(Node):
    """`conditions` are what pods were asked to say, `stored` what is kept for the next agent."""

    def shelves(self) -> Sequence[Concern]:
        self.conditions: list[IdleCondition] = []
        self.stored = Stored()
        self.activity = ActivityConcern(
            ActivityPolicy(), self.processes, self.clock, self.conditions.extend
        )
        self.need = NeedConcern(NeedPolicy(), "n1", self.stored, self.clock, timestamp)
        return self.activity, self.need
