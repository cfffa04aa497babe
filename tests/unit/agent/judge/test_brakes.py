"""What stops evictions that are due: caps, suspension, budgets, and a kill switch."""

import pytest

from agent.model.decision import Answer, Brake, Outcome
from agent.model.policy import Budgets, EvictionPolicy
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import pod
from tests.support.agent.world import Act, World
from tests.unit.agent.judge.scenes import (
    OVER,
    SLIGHTLY,
    WITHIN,
    full,
    one_on_each_card,
    settled,
    violating,
    violators,
)


def test_two_offenders() -> None:
    """The worse of two offenders goes first, the other once that one's eviction is answered."""
    world = violating(pod("a"), pod("b"))
    world.hold("b", OVER + MIB)

    assert [Act(30, "b"), Act(31, "a")] == world.run(200)


def test_offender_that_its_owner_deleted_with_an_endless_grace() -> None:
    """A terminating pod holds up nobody on a card that lacks nothing, and is stuck after 40 s."""
    world = violating(pod("a", grace_seconds=10**9), pod("b"))
    world.hold("b", OVER)
    world.at(5, world.change, "a", terminating=True)

    assert [Act(30, "b")] == world.run(200)
    assert Outcome.STUCK is world.outcome("a")


def test_neighbour_on_the_other_card_of_an_evicted_pod_waits() -> None:
    """Nobody else goes in the same pass on any card that the evicted pod will free."""
    world = violating(pod("a"), pod("b"), used=OVER + GIB)
    world.hold("a", WITHIN, card=1)
    world.hold("b", WITHIN)
    world.hold("b", OVER, card=1)

    assert [Act(30, "a"), Act(31, "b")] == world.run(200)


def test_half_the_node_violating() -> None:
    """More than half of the fenced pods over at once, of three namespaces, suspends evictions."""
    world = violators(5, "x", "y", "z")

    assert [] == world.run(200)
    assert Brake.SUSPENDED is world.decision.brake


@pytest.mark.parametrize(("of", "namespaces"), [(6, ("x", "y", "z")), (3, ("x", "y"))])
def test_fewer_violators_suspend_nothing(of: int, namespaces: tuple[str, ...]) -> None:
    """Half of the pods, or pods of two namespaces, are ordinary offenders."""
    world = violators(of, *namespaces)

    expected = [Act(30, f"p{number}") for number in range(len(namespaces))]
    assert expected == world.run(32)


def test_suspension_lifted() -> None:
    """Time stands still while evictions are suspended, and goes on after."""
    world = violators(5, "x", "y", "z")
    world.at(110, world.hold, "p2", WITHIN, card=2)

    assert [Act(139, "p0"), Act(139, "p1")] == world.run(150)


def test_cap_of_a_namespace() -> None:
    """A fourth pod of one namespace goes a minute after the first three."""
    world = one_on_each_card(4)

    expected = [Act(30, "p0"), Act(30, "p1"), Act(30, "p2"), Act(90, "p3")]
    assert expected == world.run(100)


def test_cap_of_the_node() -> None:
    """A seventh pod of the node goes a minute after the first six."""
    world = one_on_each_card(7, namespaces=4)

    expected = [*(Act(30, f"p{number}") for number in range(6)), Act(90, "p6")]
    assert expected == world.run(100)


def test_reason_of_a_cap() -> None:
    """A pod that a cap keeps says which."""
    world = one_on_each_card(4)
    world.run(31)
    (kept,) = (item for item in world.decision.verdicts if item.pod.name == "p3")

    assert (Outcome.BRAKED, Brake.NAMESPACE_CAP) == (kept.outcome, kept.brake)


def test_api_server_out_of_reach() -> None:
    """While the pods are not known for certain nobody goes, and time stands still."""
    world = violating()

    def script(second: int) -> None:
        world.reachable = not 20 < second <= 60

    assert [Act(70, "a")] == world.run(100, script)


def test_reason_of_the_start() -> None:
    """Right after the agent's start a pod over its limit says that it is still left alone."""
    world = World(started_at=0, policy=EvictionPolicy(grace_seconds=0, hold_seconds=0))
    world.add(pod(), OVER)
    world.run(59)

    assert Brake.START is world.decision.verdicts[0].brake
    assert [Act(60, "a")] == world.run(70)


def test_terminating_offender() -> None:
    """An evicted pod says that it is going while it still holds too much."""
    world = violating()
    world.run(33)

    assert Outcome.TERMINATING is world.outcome("a")


def test_terminating_pod_that_holds_nothing() -> None:
    """A terminating pod that has given its memory back holds nobody up."""
    world = violating(pod("a"), pod("b"), used=0)
    world.change("a", terminating=True)
    world.hold("b", OVER)

    assert [Act(30, "b")] == world.run(40)


def test_queued() -> None:
    """Who is due together with a worse offender on the same card is queued."""
    world = violating(pod("a"), pod("b"))
    world.hold("b", OVER + MIB)
    world.run(31)

    assert Outcome.QUEUED is world.outcome("a")


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
