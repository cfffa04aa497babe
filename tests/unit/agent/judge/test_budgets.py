"""Evictions that the API server refuses, or that a pod survives."""

import pytest

from agent.model.decision import Answer, Outcome
from agent.model.policy import Budgets, EvictionPolicy
from gpufence.quantity import MIB
from tests.support.agent.builders import pod
from tests.support.agent.world import Act
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY, WITHIN, full, settled, violating


def test_last_resort_kill() -> None:
    """Where the operator allows it, a pod that does not end has its processes killed."""
    world = violating(policy=EvictionPolicy(last_resort_kill=True))
    world.leaves_after = 1000
    world.at(5, world.change, "a", terminating=True)

    assert [Act(45, "a", "kill"), Act(50, "a", "kill")] == world.run(60)


@pytest.mark.parametrize("budgets", Budgets)
def test_budget_refuses_on_a_card_with_room(budgets: Budgets) -> None:
    """A refused eviction is asked for again, each time after twice the wait, and never forced."""
    world = violating(policy=EvictionPolicy(budgets=budgets))
    world.answer = Answer.BLOCKED

    expected = [Act(second, "a") for second in (30, 35, 45, 65, 105, 165, 225)]
    assert expected == world.run(250)


def test_budget_refuses_on_a_short_card() -> None:
    """After three refusals on a short card the pod is deleted, whatever its budget says."""
    world = full("a", SLIGHTLY, free=450 * MIB)
    world.answer = Answer.BLOCKED

    expected = [Act(3, "a"), Act(8, "a"), Act(18, "a"), Act(19, "a", "delete")]
    assert expected == world.run(30)


def test_budget_is_respected_where_the_operator_says_so() -> None:
    """With the setting respect no refusal leads to a deletion."""
    policy = EvictionPolicy(budgets=Budgets.RESPECT)
    world = full("a", SLIGHTLY, free=450 * MIB, policy=policy)
    world.answer = Answer.BLOCKED

    expected = [Act(second, "a") for second in (3, 8, 18, 38)]
    assert expected == world.run(60)


def test_pod_gone() -> None:
    """A pod that is gone when it is to be evicted is not asked for again."""
    world = violating()
    world.answer = Answer.GONE
    world.at(31, world.remove, "a")

    assert [Act(30, "a")] == world.run(200)
    assert {} == world.memory.offences


def test_failed_eviction_is_never_forced() -> None:
    """Only a budget's refusals count towards a deletion; other failures back off."""
    world = full("a", SLIGHTLY, free=450 * MIB)
    world.answer = Answer.FAILED

    assert [Act(second, "a") for second in (3, 8, 18, 38)] == world.run(60)


def test_refusals_are_forgotten() -> None:
    """
    A pod that was within its limit for long enough is asked for at once when it is over again.
    """
    world = violating()
    world.answer = Answer.BLOCKED

    def script(second: int) -> None:
        world.hold("a", WITHIN if 50 <= second < 150 else OVER)

    expected = [Act(second, "a") for second in (30, 35, 45, 180, 185)]
    assert expected == world.run(186, script)


def test_accepted_eviction_that_nothing_follows() -> None:
    """
    A pod that is not even terminating 40 s after its eviction was accepted is judged anew, as one
    evicted before.
    """
    world = violating()
    world.answer = Answer.ACCEPTED
    world.ignored = True

    assert [Act(30, "a"), Act(98, "a")] == world.run(110)


def test_stuck_pod_waits_for_brakes() -> None:
    """A kill waits for the brakes like any eviction."""
    world = violating(policy=EvictionPolicy(last_resort_kill=True))
    world.change("a", terminating=True)

    def script(second: int) -> None:
        world.reachable = not 35 <= second < 60

    assert [Act(60, "a", "kill")] == world.run(62, script)
    assert Outcome.STUCK is world.outcome("a")


def test_two_stuck_pods() -> None:
    """Two stuck pods on one card are killed one after the other."""
    world = settled(pod("a"), pod("b"), policy=EvictionPolicy(last_resort_kill=True))
    for name in ("a", "b"):
        world.hold(name, OVER)
        world.change(name, terminating=True)
    world.leaves_after = 3

    assert [Act(40, "a", "kill"), Act(41, "b", "kill")] == world.run(72)


def test_too_large_to_be_ended() -> None:
    """A pod that the API can neither evict nor delete is stuck, and asked for again in vain."""
    world = violating()
    world.answer = Answer.TOO_LARGE

    assert [Act(second, "a") for second in (30, 35, 45, 65)] == world.run(66)
    world.run(67)
    assert Outcome.STUCK is world.outcome("a")


def test_too_large_to_be_ended_but_for_a_kill() -> None:
    """The last resort comes right after the API has said that it cannot end a pod."""
    world = violating(policy=EvictionPolicy(last_resort_kill=True))
    world.answer = Answer.TOO_LARGE

    expected = [Act(30, "a"), *(Act(second, "a", "kill") for second in (31, 41, 61))]
    assert expected == world.run(62)
