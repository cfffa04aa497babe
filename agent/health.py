"""
PURE. What only a restart would cure.
"""

from __future__ import annotations

from typing import Final

STUCK_SECONDS: Final = 60.0
"""
Without one look ending for so long beyond its interval, the loop hangs. What NVML does is no reason
to restart: looks end without it, and a new agent would wait for the same driver.
"""


def trouble(silence_seconds: float, interval_seconds: float) -> str:
    """
    Say what is wrong, given when the last look ended; nothing where a restart would not help.
    """
    if silence_seconds <= STUCK_SECONDS + interval_seconds:
        return ""
    return f"no look at the cards has ended for {silence_seconds:.0f} s: the agent's loop hangs"
