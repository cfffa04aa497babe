"""Owners whose pods come back."""

from dataclasses import replace

import pytest

from agent.judge.reason import MOST_REMEMBERED, offended
from agent.model.policy import EvictionPolicy
from gpufence.quantity import MIB
from tests.support.agent.builders import controller, pod
from tests.support.agent.world import Act
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY, full, settled


@pytest.mark.parametrize(("before", "expected"), [(0, 30), (1, 60), (2, 300), (3, 1800), (9, 1800)])
def test_hold_of_a_repeat_offender(before: int, expected: int) -> None:
    """An owner evicted before gets a longer hold each time."""
    world = settled(pod(controller=controller()))
    for _ in range(before):
        offences = offended(
            world.memory.offences, pod(controller=controller()).lineage, -60.0, EvictionPolicy()
        )
        world.memory = replace(world.memory, offences=offences)
    world.hold("a", OVER)
    world.run(1)

    assert expected == world.decision.verdicts[0].due_seconds


def test_repeat_offender_on_a_short_card() -> None:
    """A shortage does not wait longer for those who caused one before."""
    world = full("a", SLIGHTLY, free=450 * MIB)
    lineage = world.pods["a"].lineage
    world.memory = replace(world.memory, offences=offended({}, lineage, -60.0, EvictionPolicy()))

    assert [Act(3, "a")] == world.run(10)


@pytest.mark.parametrize(
    ("ladder", "since", "expected"),
    [
        ((60.0,), EvictionPolicy().repeated_memory_seconds, 60),
        ((60.0,), EvictionPolicy().repeated_memory_seconds + 1, 30),
        ((), 60.0, 30),
    ],
)
def test_offences_are_forgotten(ladder: tuple[float, ...], since: float, expected: int) -> None:
    """After a day, or without longer holds at all, an owner is like any other."""
    world = settled(policy=EvictionPolicy(repeated_hold_seconds=ladder))
    world.memory = replace(world.memory, offences=offended({}, pod().lineage, -since, world.policy))
    world.hold("a", OVER)
    world.run(1)

    assert expected == world.decision.verdicts[0].due_seconds


def test_what_is_remembered_of_owners_stays_bounded() -> None:
    """
    An eviction too old to matter is dropped with the next one, and the oldest when there are many.
    """
    policy = EvictionPolicy()
    old = offended({}, ("n", "Pod", "old"), 0.0, policy)
    later = policy.repeated_memory_seconds + 1
    many = old
    for number in range(MOST_REMEMBERED + 1):
        many = offended(many, ("n", "Pod", f"p{number}"), float(number), policy)

    assert [("n", "Pod", "next")] == list(offended(old, ("n", "Pod", "next"), later, policy))
    assert MOST_REMEMBERED == len(many)
    assert ("n", "Pod", "old") not in many
