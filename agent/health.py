"""
PURE. What only a restart would cure.

Most of what goes wrong is no reason to restart: looks end without NVML, a new agent would wait for
the same driver or API server, and what is remembered of the pods would be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.model.sample import NO_TROUBLE, TroubleCode

if TYPE_CHECKING:
    from agent.model.state import AgentState

STUCK_SECONDS: Final = 60.0
"""Without one look ending for so long beyond its interval, the loop hangs."""

CONTAINER_SECONDS: Final = 600.0
"""
After so long without any card, for a reason that a new container may not have, this one is given
up: upgrades and resets of a driver are over by then.
"""


def trouble_of_loop(silence_seconds: float, interval_seconds: float) -> str:
    """
    Return what is wrong, given when the last look ended; nothing where a restart would not help.
    """
    if silence_seconds <= STUCK_SECONDS + interval_seconds:
        return ""
    return f"no look at the cards has ended for {silence_seconds:.0f} s: the agent's loop hangs"


def trouble_of_container(state: AgentState, now: float) -> str:
    """
    Return what this container has lost for good; a driver that hangs or is not loaded is not that.
    """
    trouble = NO_TROUBLE if state.last is None else state.last.observation.sample.trouble
    since = state.started_at if state.measured_at is None else state.measured_at
    if now - since <= CONTAINER_SECONDS or trouble.code is not TroubleCode.CONTAINER:
        return ""
    return f"no card can be read for {now - since:.0f} s, and a new container may: {trouble}"
