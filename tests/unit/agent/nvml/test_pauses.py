"""
How long failures are left alone.
"""

from __future__ import annotations

import pytest

from agent.nvml.pauses import pause_seconds


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (7, 32), (8, 60), (10_000, 60)],
)
def test_pauses_grow_from_the_second_failure_on(failures: int, seconds: float) -> None:
    """
    After the first failure there is no pause; then it doubles up to its limit.
    """
    assert seconds == pause_seconds(failures, 1.0, 60.0)
