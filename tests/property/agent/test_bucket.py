"""What holds for a leaky bucket, and for looks that come when one is full."""

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.judge.time import BucketRules, pour
from agent.loop.loop import LEAST_PAUSE_SECONDS, next_due
from agent.model.memory import EMPTY, Bucket
from gpufence.quantity import GIB, MIB
from tests.property.agent.strategies import POLICY
from tests.support.agent.builders import LIMIT, pod
from tests.support.agent.world import World

steps = st.lists(
    st.tuples(st.sampled_from([True, False, None]), st.floats(0.1, 5), st.booleans()), max_size=40
)
CAP = 10.0
GAP = 3.0
SPILLS = [(True, seconds, False) for seconds in (1.0, 1.0, 2.0, 3.0, 3.0, 3.0)]
"""Seconds over, the last of which do not fit into what is left of ten."""


def poured(history: list[tuple[bool | None, float, bool]]) -> list[Bucket]:
    bucket, at, found = EMPTY, 0.0, []
    for over, seconds, frozen in history:
        at += seconds
        bucket = pour(bucket, BucketRules(at, CAP, GAP, frozen=frozen), over=over)
        found.append(bucket)
    return found


@given(steps)
@example(SPILLS)
def test_never_outside_its_bounds(history: list[tuple[bool | None, float, bool]]) -> None:
    """A bucket is never less than empty, and more than full by one drop at most."""
    drops = [seconds for _, seconds, _ in history if seconds <= GAP]
    most = CAP + max(drops, default=0.0)

    assert all(0.0 <= bucket.level_seconds <= most + 1e-6 for bucket in poured(history))


@given(steps)
def test_never_more_than_the_time_over(history: list[tuple[bool | None, float, bool]]) -> None:
    """A bucket never holds more time than has been seen over."""
    over_seconds = sum(seconds for (over, _, _), (_, seconds, _) in pairwise(history) if over)

    assert all(bucket.level_seconds <= over_seconds + 1e-6 for bucket in poured(history))


@given(steps, st.integers(0, 39))
@example([*[(True, 1.0, False)] * 12, (True, 3.0, False)], 10)
def test_one_sample_under_never_fills(
    history: list[tuple[bool | None, float, bool]], position: int
) -> None:
    """Turning one sample from over to under never leaves a bucket fuller."""
    lower = [
        (False if index == position and over else over, seconds, frozen)
        for index, (over, seconds, frozen) in enumerate(history)
    ]

    pairs = zip(poured(lower), poured(history), strict=True)
    assert all(low.level_seconds <= high.level_seconds + 1e-6 for low, high in pairs)


OVER = LIMIT + 300 * MIB
ROUNDING = 1e-6
chances = st.lists(st.floats(0, 1, exclude_max=True), min_size=60, max_size=60)
spans = st.lists(st.floats(0.05, 4), min_size=1, max_size=20)


class Looked:
    """
    A life of one pod that is within its limit and over it by turns, and stays over in the end, and
    when it was looked at by a loop whose looks come by these chances.
    """

    def __init__(self, spans: list[float], chances: list[float], took: float = 0.0) -> None:
        self.world = World(policy=POLICY, cards=1)
        self.world.add(pod("a"), GIB)
        self.world.settle_in()
        self.looks: list[tuple[float, bool]] = []
        self.ends = [sum(spans[: index + 1]) for index in range(len(spans))]
        due = 0.0
        for chance in chances:
            if self.world.acts:
                break
            over = sum(due >= end for end in self.ends) % 2 == 1 or due >= self.ends[-1]
            self.looks.append((due, over))
            self.world.hold("a", OVER if over else GIB)
            self.world.now = due  # type: ignore[assignment] # between two seconds, too
            self.world.tick()
            deadline = self.world.decision.deadline
            due, _ = next_due(due, due + took, POLICY.interval_seconds, chance, deadline, took)


@given(spans, chances)
def test_no_pod_is_evicted_before_its_time(spans: list[float], chances: list[float]) -> None:
    """Whenever looks come, a pod that is evicted was seen over its limit for the whole duration."""
    life = Looked(spans, chances)
    seen = sum(later - at for (at, over), (later, _) in pairwise(life.looks) if over)
    if life.world.acts:
        assert seen >= POLICY.hold_seconds - ROUNDING


@given(st.floats(0.05, 4), chances)
def test_an_eviction_comes_when_it_is_due(within: float, chances: list[float]) -> None:
    """A pod that stays over its limit goes when its time is up, or a tenth of a second later."""
    life = Looked([within], chances)
    first = next(at for at, over in life.looks if over)
    (act,) = life.world.acts

    assert pytest.approx(first + POLICY.hold_seconds, abs=0.1 + ROUNDING) == act.second
    assert act.second >= first + POLICY.hold_seconds - ROUNDING


@given(spans, chances, st.floats(0, 0.4))
def test_looks_come_no_more_often(spans: list[float], chances: list[float], took: float) -> None:
    """
    A look that comes early leaves the pause, and as long as the one before took; none is later than
    the interval.
    """
    looks = [at for at, _ in Looked(spans, chances, took).looks]
    least = min(POLICY.interval_seconds / 2, took + max(LEAST_PAUSE_SECONDS, took))
    for one, next_one in pairwise(looks):
        assert next_one - one >= least - ROUNDING
        assert next_one - one <= POLICY.interval_seconds + ROUNDING


@given(st.floats(0, 5), st.floats(0, 1, exclude_max=True))
def test_without_a_deadline_looks_come_as_ever(late: float, chance: float) -> None:
    """A deadline that is far away changes nothing."""
    now = 10.0 + late
    usual, far = next_due(10.0, now, 1.0, chance), next_due(10.0, now, 1.0, chance, now + 2)

    assert usual == far == next_due(10.0, now, 1.0, chance, math.inf, late)
