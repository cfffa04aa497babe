"""A node whose agent records how pods end."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.concern import Concern
from agent.concerns.history.concern import PAGE, HistoryConcern
from gpufence.records import NodeRecords, Record, read_records
from gpufence.times import write_moment
from tests.support.agent.node import QUICK, Node

NODE = "n1"


@dataclass
class Kept:
    """What was `found` of records, and what has been stored since."""

    found: NodeRecords | None = field(default_factory=lambda: NodeRecords(NODE))
    stored: list[NodeRecords] = field(default_factory=list)

    def start(self) -> None: ...

    def store(self, kept: NodeRecords) -> None:
        self.stored.append(kept)

    def stop(self) -> None: ...


class RecordedNode(Node):
    """A node whose agent records how pods end."""

    def shelves(self) -> Sequence[Concern]:
        self.kept = Kept()
        self.history = HistoryConcern(
            QUICK, NODE, self.kept, self.clock, lambda: write_moment(self.clock())
        )
        return (self.history,)

    def records(self, only: str = "") -> tuple[Record, ...]:
        path = f"{PAGE}?only={only}" if only else PAGE
        return read_records(self.concerns.pages()[path]()).records
