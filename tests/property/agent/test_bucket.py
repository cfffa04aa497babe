"""What holds for a leaky bucket."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from agent.judge.time import BucketRules, pour
from agent.model.memory import EMPTY, Bucket

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
