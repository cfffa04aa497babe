"""When a restart would help."""

import pytest

from agent.health import CONTAINER_SECONDS, trouble_of_container, trouble_of_loop
from agent.model.state import AgentState
from agent.nvml.faults import Code, trouble_of
from agent.nvml.protocol import NvmlFailure
from tests.support.agent.node import Node

LONG = CONTAINER_SECONDS + 1.0


@pytest.mark.parametrize("silence", [0.0, 5.0, 60.5])
def test_looks_that_end_are_healthy(silence: float) -> None:
    """Up to a minute beyond the interval a look may take."""
    assert "" == trouble_of_loop(silence, 1.0)


def test_a_loop_that_hangs_is_not() -> None:
    """Beyond that, the probe is told since when."""
    expected = "no look at the cards has ended for 62 s: the agent's loop hangs"

    assert expected == trouble_of_loop(62.0, 1.0)


def blind(code: Code) -> AgentState:
    """Return what is known by an agent whose NVML has answered with this code from the start."""
    node = Node()
    node.cards.trouble = trouble_of(NvmlFailure(code, "nvmlInit"))
    node.tick()
    return node.loop.state


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.UNKNOWN, True),
        (Code.OPERATING_SYSTEM, True),
        (Code.LIB_RM_VERSION_MISMATCH, True),
        (Code.DRIVER_NOT_LOADED, False),
        (Code.GPU_IS_LOST, False),
    ],
)
def test_only_what_a_new_container_may_have_is_worth_a_restart(
    code: Code, *, expected: bool
) -> None:
    """
    Lost devices and a replaced library are the container's; a driver that is away is the node's.
    """
    state = blind(code)

    assert "" == trouble_of_container(state, state.started_at + CONTAINER_SECONDS)
    assert expected is bool(trouble_of_container(state, state.started_at + LONG))


def test_a_card_that_was_read_counts_from_then() -> None:
    """The time without any card begins with the last one that could be read."""
    node = Node()
    node.tick()
    measured = node.clock.now
    node.cards.trouble = trouble_of(NvmlFailure(Code.UNKNOWN, "nvmlInit"))
    node.tick(seconds=500.0)
    state = node.loop.state

    assert "" == trouble_of_container(state, measured + CONTAINER_SECONDS)
    assert trouble_of_container(state, measured + LONG).startswith("no card can be read for 601 s")


def test_before_the_first_look_nothing_is_wrong() -> None:
    """An agent that has not looked yet has no reason to give up."""
    assert "" == trouble_of_container(AgentState(0.0, 0.0), LONG)
