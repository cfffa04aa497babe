"""
What holds for every history of looks, restarts and clocks: nothing is forgotten, nothing grows.
"""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from agent.concerns.need.ledger import (
    both,
    configmap,
    entered,
    need_of,
    restored,
    stored_need,
    united,
)
from agent.concerns.need.model import NO_NEED, NeedLedger, NeedLook
from agent.model.use import Observation
from gpufence.need import NeedDay, NodeNeed, OwnerNeed, read_need, write_need
from gpufence.quantity import MIB
from tests.support.agent.builders import card_sample, controller, pod, process_of, uses

NODE = "n1"
DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")
PODS = {
    name: pod(name, controller=controller(name=f"web-{name[0]}", uid=name[0]))
    for name in ("a1", "a2", "b1")
}


@dataclass(frozen=True)
class Step:
    """
    What each pod that is there holds in MiB, and whether the agent is another one from now on.
    """

    held: dict[str, int]
    restart: bool = False


steps = st.builds(
    Step, st.dictionaries(st.sampled_from(sorted(PODS)), st.integers(1, 9)), st.booleans()
)
histories = st.lists(st.lists(steps, min_size=1, max_size=8), min_size=1, max_size=len(DAYS))
amounts = st.integers(0, 5)
rows = st.builds(
    NeedDay,
    st.just(DAYS[0]),
    amounts,
    pods=amounts,
    processes=amounts,
    held_seconds=st.floats(0, 9),
    capped=st.booleans(),
    told_bytes=st.none() | amounts,
    limit_bytes=st.none() | amounts,
    evicted_bytes=amounts,
    evicted_limit_bytes=amounts,
    evictions=amounts,
    out_of_memory_limit_bytes=amounts,
    driver_peak=st.booleans(),
    process_bytes=amounts,
    started=amounts,
    shares=amounts,
    levels=st.dictionaries(st.sampled_from([64, 128, 256]), amounts).map(
        lambda times: tuple(sorted(times.items()))
    ),
)


class Agents:
    """One agent after the other on a node whose pods hold memory from when they are made."""

    def __init__(self) -> None:
        self.ledger: NeedLedger = NO_NEED
        self.before: Observation | None = None
        self.now = 0.0
        self.made: dict[str, str] = {}

    def live(self, day: str, hour: int, step: Step, *, restarts: bool) -> None:
        at = f"{day}T{hour:02}:00:00Z"
        if restarts and step.restart:
            text = configmap(need_of(self.ledger, NODE), at, "")
            self.ledger = restored(NO_NEED, stored_need(text, NODE, at))
            self.before = None
        self.made = {name: self.made.get(name, f"{day}T{hour:02}:00:01Z") for name in step.held}
        self.now += 20.0
        there = [
            replace(PODS[name], uid=f"{name}-{at}", created=at) for name, at in self.made.items()
        ]
        pids = {item.name: 10 + sorted(PODS).index(item.name) for item in there}
        held: dict[int, int | None] = {
            pids[name]: amount * MIB for name, amount in step.held.items()
        }
        owners = [process_of(item, pids[item.name]) for item in there]
        seen = uses([card_sample(0, held, at=self.now)], owners, there, self.before)
        self.ledger = entered(self.ledger, NeedLook(seen, self.before, self.now, day, 3.0))
        self.before = seen


def lived(history: list[list[Step]], *, restarts: bool) -> NodeNeed:
    """Return what is remembered at the end, but for the time, of which restarts cost some."""
    agents = Agents()
    for day, of_day in zip(DAYS, history, strict=False):
        for hour, step in enumerate(of_day):
            agents.live(day, hour, step, restarts=restarts)
    need = need_of(agents.ledger, NODE)
    owners = [
        OwnerNeed(owner.key, tuple(day._replace(held_seconds=0.0, levels=()) for day in owner.days))
        for owner in need.owners
    ]
    return need._replace(owners=tuple(owners))


@given(histories)
def test_restarts_forget_nothing_and_count_nobody_twice(history: list[list[Step]]) -> None:
    """Agents that come and go remember what one agent would have."""
    assert lived(history, restarts=False) == lived(history, restarts=True)


@given(histories)
def test_what_is_remembered_reads_back(history: list[list[Step]]) -> None:
    """Whatever is entered survives the way into the object and back."""
    need = lived(history, restarts=True)

    assert need == read_need(write_need(need))


@given(rows, rows, rows)
def test_the_order_in_which_days_are_put_together_does_not_matter(
    one: NeedDay, other: NeedDay, third: NeedDay
) -> None:
    """Days of two agents make the same day whichever is first, and once more changes nothing."""
    together = united(one, other)

    assert together == united(other, one) == united(together, one)
    assert united(united(one, other), third) == united(one, united(other, third))


@given(histories, histories)
def test_two_agents_lose_nothing_of_each_other(
    one: list[list[Step]], other: list[list[Step]]
) -> None:
    """Put together, no peak of either is missing."""
    first, second = lived(one, restarts=False), lived(other, restarts=False)
    whole = {
        owner.key: {day.day: day for day in owner.days} for owner in both(first, second).owners
    }

    assert all(
        whole[owner.key][day.day].peak_bytes >= day.peak_bytes
        for need in (first, second)
        for owner in need.owners
        for day in owner.days
    )
