"""How containers ended at their cap, recorded tick by tick."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agent.concern import Concern
from agent.concerns.history.concern import PAGE, HistoryConcern
from agent.model.pod import ContainerFailure, PodOnNode
from gpufence.capped import Ending, Given
from gpufence.quantity import GIB, MIB
from gpufence.records import NodeRecords, Record, read_records
from gpufence.times import write_moment
from tests.support.agent.builders import CARDS, LIMIT, pod
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


GIVEN = Given(LIMIT, 2150 * MIB, 512 * MIB)
OOM = "CUDA out of memory"


def ended(node: Node, item: PodOnNode, words: str = OOM, **more: Any) -> None:
    """Have a pod's status say that its container has failed just now."""
    said = {"at": write_moment(node.clock()), "silent": not words, **more}
    ending = Ending("main", 1, "Error", out_of_memory=words, **said)
    node.claim(replace(item, failures=(ContainerFailure(ending, GIVEN),)))


@pytest.mark.parametrize(("words", "used"), [(OOM, GIB), ("", 2300 * MIB)])
def test_an_end_at_the_cap_is_recorded(words: str, used: int) -> None:
    """The record has the container, what it was given, and its course up to the end."""
    node = RecordedNode()
    node.add(pod("a"), MIB, 2, card=1)
    node.add(pod("a"), used, 1)
    node.tick(3)
    ended(node, pod("a"), words)
    node.cards.held[0].clear()
    node.tick(2)
    (record,) = node.records()

    assert ("capped", "main", bool(words), CARDS[0].uuid) == (
        record.kind,
        record.container,
        record.certain,
        record.card,
    )
    assert (LIMIT, 2150 * MIB, used) == (
        record.asked_bytes,
        record.given_bytes,
        record.peak_bytes,
    )
    assert LIMIT < (record.enough_bytes or 0)


def test_the_last_end_of_a_container_is_kept() -> None:
    """A crash loop has one record, also of a pod that was never seen to hold memory."""
    node = RecordedNode()
    node.add(pod("a"), GIB, 1)
    node.tick(2)
    for _ in range(3):
        ended(node, pod("a"))
        node.cards.held[0].clear()
        node.tick(500)
    (record,) = node.records()

    assert ("", write_moment(node.clock() - 500)) == (record.card, record.at)


def test_what_no_cap_is_why_of_is_not_recorded() -> None:
    """Other failures, those of long ago, and those of pods that are not fenced have no record."""
    node = RecordedNode()
    ended(node, pod("other words"), "", silent=False)
    ended(node, pod("held little"), "")
    node.add(pod("leaving", terminating=True), 2300 * MIB, 1)
    node.tick()
    ended(node, pod("leaving", terminating=True), "")
    ended(node, pod("unfenced", mode=None))
    ended(node, pod("long ago"), at="1970-01-01T00:00:00Z")
    ended(node, pod("undated and refused"), at="x", refused="it cannot be held to the limit")
    node.tick(2)

    assert () == node.records()
