"""A ledger of need on a fake clock, entered look by look."""

from dataclasses import replace

from agent.concerns.need.container_usage import key_of
from agent.concerns.need.ledger import entered, need_of, restored
from agent.concerns.need.model import NO_NEED, NeedLook, StoredNeed
from agent.model.pod import PodOnNode
from agent.model.use import Observation
from gpufence.need import NeedDay, NeedKey, NodeNeed
from tests.support.agent.builders import CARDS, card_sample, process_of, uses

TODAY = "2026-11-19"
TOMORROW = "2026-11-20"
NODE = "n1"


class Book:
    """Every pod has one process, whose PID goes by the pod's name."""

    def __init__(self, stored: StoredNeed | None = None) -> None:
        self.ledger = NO_NEED if stored is None else restored(NO_NEED, stored)
        self.now = 1000.0
        self.day = TODAY
        self.before: Observation | None = None
        self._pids: dict[tuple[str, str], int] = {}

    def pid(self, pod: str, container: str = "main") -> int:
        return self._pids.setdefault((pod, container), 10 + len(self._pids))

    def look(
        self,
        held: dict[str, int | None],
        *pods: PodOnNode,
        seconds: float = 1.0,
        peaks: dict[str, int] | None = None,
        mps: tuple[str, ...] = (),
    ) -> Observation:
        """Enter what pods hold, or `pod/container`s, on the first card."""
        self.now += seconds
        owners, amounts = [], {}
        for name, amount in held.items():
            pod, _, container = name.partition("/")
            item = next((each for each in pods if each.name == pod), None)
            pid = self.pid(pod, container or "main")
            amounts[pid] = amount
            if item is not None:
                owners.append(process_of(item, pid, container or "main"))
        sample = card_sample(0, amounts, at=self.now, mps=[self.pid(name) for name in mps])
        most = {self.pid(*name.split("/")): amount for name, amount in (peaks or {}).items()}
        seen = uses([replace(sample, peaks=most)], owners, pods, self.before, at=self.now)
        return self.enter(seen)

    def enter(self, seen: Observation) -> Observation:
        look = NeedLook(seen, self.before, self.now, self.day, 3.0)
        self.ledger = entered(self.ledger, look)
        self.before = seen
        return seen

    @property
    def need(self) -> NodeNeed:
        return need_of(self.ledger, NODE)

    @property
    def keys(self) -> list[NeedKey]:
        return [owner.key for owner in self.need.owners]

    @property
    def days(self) -> tuple[NeedDay, ...]:
        (owner,) = self.need.owners
        return owner.days

    @property
    def only(self) -> NeedDay:
        (row,) = self.days
        return row


def key(pod: PodOnNode, container: str = "main") -> NeedKey:
    return key_of(pod, container, CARDS[0])
