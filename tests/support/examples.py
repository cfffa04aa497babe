"""
How many examples a property is tried with: few in each run, since every run draws others, and many
times as many in `make soak`.
"""

import os
from typing import Final

from hypothesis import HealthCheck, settings

USUAL: Final = 40
_TIMES: Final = int(os.environ.get("GPUFENCE_EXAMPLES_TIMES", "1"))


def examples(count: int = USUAL) -> settings:
    """
    On a busy machine neither an example nor drawing it has a time: the health check for slow
    drawing goes by the clock.
    """
    return settings(
        max_examples=count * _TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
