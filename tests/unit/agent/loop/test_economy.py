"""
How many Events an owner costs whose pods misbehave all day: at most 20 in any hour of one agent,
its pods' own among them, objects that are made (POST) and counts that are written (PATCH) alike.
"""

from collections import Counter
from dataclasses import replace
from itertools import count

import pytest

from agent.events.episodes import EventCreate, EventPatch
from agent.model.pod import Cap
from agent.model.policy import EvictionPolicy
from gpufence import names
from gpufence.mode import Mode
from gpufence.quantity import GIB
from tests.support.agent.builders import LIMIT, controller, pod
from tests.support.agent.node import Node, running

HOUR = 3600.0
STEP = 60.0
MOST_AN_HOUR = 20
POLICY = EvictionPolicy(
    interval_seconds=STEP,
    start_pause_seconds=0.0,
    grace_seconds=0.0,
    hold_seconds=2.0,
    repeated_hold_seconds=(2.0,),
)
PATIENT = replace(POLICY, repeated_hold_seconds=EvictionPolicy().repeated_hold_seconds)


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
    [(Mode.OBSERVE, POLICY, 24), (Mode.EVICT, PATIENT, 24), (Mode.EVICT, POLICY, 3)],
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
    with running(POLICY) as node:
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
    with running(POLICY) as node:
        day = Day(node, Mode.EVICT)
        day.live(0.5)
    kinds = Counter(item.notice.reason for item in day.about("Pod"))

    assert {names.LIMIT_EXCEEDED, names.CAP_INEFFECTIVE, names.EVICTED} >= kinds.keys()
    assert kinds[names.EVICTED] >= 1
    assert all(isinstance(item, EventCreate) for item in day.about("Pod"))
