"""Processes of which the driver does not say how much they hold."""

import pytest

from agent.model.decision import Outcome
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import pod
from tests.support.agent.world import Act, World
from tests.unit.agent.judge.scenes import OVER, SHORT_ONLY, WITHIN, robbed, violating


def beside_unknown(known: int) -> World:
    """Make a node on which a pod has one process that is known, and one without a figure."""
    world = violating(pod("a", "main", "aside"), used=known)
    world.hold("a", None, container="aside")
    return world


def test_what_is_certain_is_enough() -> None:
    """A pod goes for what its known processes hold above the limit, beside one without a figure."""
    assert [Act(30, "a")] == beside_unknown(OVER).run(100)


def test_a_figure_that_comes_and_goes() -> None:
    """A process whose figure comes and goes gives its pod nothing back."""
    world = violating(pod("a", "main", "aside"), used=OVER)

    def script(second: int) -> None:
        world.hold("a", None if second % 2 else 10 * MIB, container="aside")

    assert [Act(30, "a")] == world.run(100, script)


@pytest.mark.parametrize("known", [0, WITHIN, 3 * GIB, 3 * GIB + 60 * MIB])
def test_what_is_uncertain_is_not(known: int) -> None:
    """A pod whose known processes are within the limit is unknown, and stays."""
    world = beside_unknown(known)

    assert [] == world.run(100)
    assert Outcome.UNKNOWN is world.outcome("a")


def test_a_certain_excess_within_the_margin_is_not() -> None:
    """A pod that is certainly over, but not certainly by more than the margin, stays."""
    world = beside_unknown(3 * GIB + 100 * MIB)

    assert [] == world.run(100)
    assert Outcome.UNKNOWN is world.outcome("a")
    assert world.decision.verdicts[0].over


def test_a_shortage_is_ended_by_what_is_certain() -> None:
    """A thief with a process without a figure goes for the shortage that its certain part makes."""
    world = robbed(policy=SHORT_ONLY)
    world.hold("a", None, container="aside")
    world.change("a", containers=pod("a", "main", "aside").containers)

    assert [Act(9, "a")] == world.run(100)[:1]
