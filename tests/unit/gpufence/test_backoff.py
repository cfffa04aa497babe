"""Pauses grow, stay bounded, and differ between those who pause."""

import pytest

from gpufence.backoff import Backoff


def test_pauses_double_up_to_the_limit() -> None:
    """The shortest pauses of the first attempts double until half the limit."""
    delays = [Backoff().delay_seconds(attempt, 0.0) for attempt in range(9)]

    assert [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0] == delays


def test_chance_stretches_a_pause_up_to_twice() -> None:
    """The draw chooses within the upper half of the step."""
    assert (4.0, 6.0) == (Backoff().delay_seconds(4, 0.0), Backoff().delay_seconds(4, 0.5))


@pytest.mark.parametrize("attempt", [0, -1])
def test_before_any_failure_there_is_no_pause(attempt: int) -> None:
    """Nothing went wrong, nothing is waited for."""
    assert Backoff().delay_seconds(attempt, 0.9) == 0
