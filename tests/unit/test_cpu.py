"""What a call takes of the processor is told alike, whatever else runs and traces."""

import sys
from types import FrameType

from tests.support import observing
from tests.support.observing import quiet_seconds


def _call_often(times: int) -> None:
    for _ in range(times):
        _nothing()


def _nothing() -> None:
    """Do what a tracer is told of."""


def test_a_call_is_told_by_the_yardstick() -> None:
    """Twice the yardstick's own loop takes twice what the yardstick takes on a quiet machine."""
    told = quiet_seconds(observing._yardstick, lambda: 2 * observing._STEPS, rounds=40)

    assert 1.5 * observing.YARDSTICK_SECONDS < told < 3 * observing.YARDSTICK_SECONDS


def test_no_tracer_is_told_of_the_call() -> None:
    """What traces the caller neither sees the call nor is lost by it."""
    seen: list[str] = []

    def trace(frame: FrameType, _event: str, _arg: object) -> None:
        seen.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        quiet_seconds(_call_often, lambda: 10, rounds=1)
        after = sys.gettrace()
    finally:
        sys.settrace(before)

    assert "_nothing" not in seen
    assert "quiet_seconds" in seen
    assert after is trace


def test_no_round_follows_one_that_was_fast_enough() -> None:
    """Measuring ends with the first round that takes less than what is enough."""
    numbers = iter(range(9))
    quiet_seconds(_call_often, lambda: next(numbers), enough=1)

    assert 1 == next(numbers)
