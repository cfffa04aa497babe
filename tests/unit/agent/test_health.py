"""
When a restart would help.
"""

from __future__ import annotations

import pytest

from agent.health import trouble


@pytest.mark.parametrize("silence", [0.0, 5.0, 60.5])
def test_looks_that_end_are_healthy(silence: float) -> None:
    """
    Up to a minute beyond the interval a look may take.
    """
    assert "" == trouble(silence, 1.0)


def test_a_loop_that_hangs_is_not() -> None:
    """
    Beyond that, the probe is told since when.
    """
    assert "no look at the cards has ended for 62 s: the agent's loop hangs" == trouble(62.0, 1.0)
