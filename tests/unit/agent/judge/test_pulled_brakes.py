"""
Brakes that a tenant would like to pull: decoys that leave, suspension, and the caps of the minute.
"""

from dataclasses import replace

import pytest

from agent.model.decision import Answer, Brake, Outcome
from agent.model.memory import Bucket, Evicted
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.world import Act, World
from tests.unit.agent.judge.scenes import (
    OVER,
    SHORT_ONLY,
    SLIGHTLY,
    THEFT,
    full,
    robbed,
    settled,
    violators,
)

UUID = CARDS[0].uuid


def decoys(world: World, namespace: str, *, held: int, ends_after: int = 35) -> None:
    """Send a pod on its way out every 35 s, for an hour."""
    for number, second in enumerate(range(0, 3600, 35)):
        decoy = pod(f"decoy{number}", namespace=namespace, terminating=True)
        world.at(second, world.add, decoy, held)
        world.at(second + ends_after, world.remove, decoy.name)


@pytest.mark.parametrize("namespace", ["team-a", "team-c"])
def test_decoys_shield_nobody(namespace: str) -> None:
    """Pods that leave one after the other, and give back too little, hold up nobody."""
    world = robbed(policy=SHORT_ONLY, free=GIB)
    decoys(world, namespace, held=90 * MIB, ends_after=45)

    assert [Act(9, "a")] == world.run(60)


def test_decoys_are_not_the_larger_part_of_a_shortage() -> None:
    """What pods on their way out hold takes no blame off the one who stays."""
    world = settled(pod("a", limit=GIB), pod("b", limit=13 * GIB), used=MIB, policy=SHORT_ONLY)
    world.hold("a", 2 * GIB)
    decoys(world, "team-c", held=GIB, ends_after=45)
    world.add(pod("other", namespace="free", mode=None), 100 * MIB)

    assert ["a"] == [act.pod for act in world.run(200)]


@pytest.mark.parametrize(("namespace", "second"), [("team-a", 3), ("team-c", 43)])
def test_what_leaving_pods_give_back_is_waited_for_once(namespace: str, second: int) -> None:
    """
    Leaving pods that would end the shortage hold up another namespace's offender for 40 s in all.
    """
    world = robbed(policy=SHORT_ONLY, free=0)
    world.hold("a", THEFT - 3 * GIB)
    decoys(world, namespace, held=3 * GIB)

    assert [Act(second, "a")] == world.run(100)


def test_who_waits_for_a_leaving_pod_says_so() -> None:
    """An offender who is held up names the brake."""
    world = robbed(policy=SHORT_ONLY, free=0)
    world.hold("a", THEFT - 3 * GIB)
    decoys(world, "team-c", held=3 * GIB)
    world.run(20)
    (found,) = (item for item in world.decision.verdicts if item.pod.name == "a")

    assert (Outcome.BRAKED, Brake.TERMINATING) == (found.outcome, found.brake)


def test_a_tolerated_pod_waits_for_whatever_leaves() -> None:
    """A pod within the margin never goes while others on their way out end the shortage."""
    world = full("a", SLIGHTLY, free=450 * MIB)
    world.memory = replace(world.memory, held_up={UUID: Bucket(40.0, over=False, at=-1)})
    decoys(world, "team-c", held=70 * MIB)
    world.free[0] = 450 * MIB

    assert [] == world.run(300)


def test_suspension_counts_only_who_could_go() -> None:
    """Pods that are reported only suspend no evictions, however many they are."""
    world = settled(pod("a"))
    for number, mode in enumerate((Mode.CAP, Mode.OBSERVE, Mode.CAP)):
        name = f"p{number}"
        world.add(pod(name, namespace=name, mode=mode), 2 * LIMIT, card=1)
        world.add(pod(f"q{number}", namespace=name, enforced=False), 2 * LIMIT, card=1)
    world.run(1)
    world.hold("a", OVER)

    assert [Act(31, "a")] == world.run(60)


def test_suspension_is_of_one_measure() -> None:
    """A unit that is mistrusted suspends the evictions of its own pods alone."""
    world = violators(5, "x", "y", "z")
    world.add(pod("other", measure="hami, MiB"), OVER, card=5)
    assert ["other"] == [act.pod for act in world.run(200)]
    assert Brake.SUSPENDED is world.decision.brake


def test_suspension_counts_nobody_in_its_grace() -> None:
    """Pods that have just started and peak together suspend nothing."""
    world = settled(pod("a"))
    for name in "xyz":
        world.add(pod(name, namespace=name), OVER, card=1)
    world.hold("a", OVER)

    assert Act(30, "a") in world.run(60)


def test_suspension_lets_shortages_be_ended() -> None:
    """While evictions are suspended, who takes what others were promised goes all the same."""
    world = violators(5, "w", "x", "y", "z")
    world.add(pod("b", limit=12 * GIB), MIB, card=0)
    world.hold("p0", 10 * GIB, card=0)

    assert ["p0"] == [act.pod for act in world.run(200)]


def test_the_caps_of_the_minute_hold_up_no_end_of_a_shortage() -> None:
    """Who uses up the evictions of his namespace elsewhere goes for a shortage all the same."""
    world = robbed(policy=SHORT_ONLY)
    world.memory = replace(world.memory, evicted=(Evicted(0.0, "team-a"),) * 10)

    assert [Act(9, "a")] == world.run(20)


def test_nobody_goes_for_a_shortage_while_pods_are_not_known_for_certain() -> None:
    """With the API server out of reach what ends a shortage waits, too."""
    world = robbed(policy=SHORT_ONLY)

    def script(second: int) -> None:
        world.reachable = not 5 <= second < 20

    # 5 s by second 5, and 20 s from there on: the second before the first look is lost.
    assert [Act(24, "a")] == world.run(60, script)


def test_who_is_due_for_a_shortage_waits_for_the_api_server() -> None:
    """A pod that is to be asked for again waits until the pods are known for certain."""
    world = robbed(policy=SHORT_ONLY)
    world.answer = Answer.BLOCKED

    def script(second: int) -> None:
        world.reachable = not 10 <= second < 40

    world.run(30, script)
    (found,) = (item for item in world.decision.verdicts if item.pod.name == "a")

    assert Brake.STALE_PODS is found.brake
    assert [Act(9, "a"), Act(40, "a")] == world.run(41, script)
