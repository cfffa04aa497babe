"""When a bucket of time is full."""

import pytest

from agent.judge.time import BucketRules, is_due, pour
from agent.model.memory import EMPTY


@pytest.mark.parametrize(("ends_at", "due"), [(3.0, True), (2.99, True), (2.9, False)])
def test_a_hold_is_over_with_the_sample_that_should_end_it(ends_at: float, *, due: bool) -> None:
    """Samples that come a hair early end a hold all the same, not an interval later."""
    bucket = EMPTY
    for at in (0.0, 1.0, 2.0, ends_at):
        bucket = pour(bucket, BucketRules(at, 3.0, 3.0), over=True)

    assert due is is_due(bucket, 3.0)
