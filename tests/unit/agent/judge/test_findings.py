"""What is said of cards and containers, which lists are wanted next, and who pulls the brakes."""

import math
from dataclasses import replace

import pytest

from agent.judge.reason import refused
from agent.model.decision import Answer, Brake, ContainerExcess, Ineffective, Outcome, Verdict
from agent.model.memory import NO_REFUSALS, Bucket, Evicted, Refusals
from agent.model.pod import Cap, PodLimit
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, on_card, pod
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.unit.agent.judge.scenes import (
    OVER,
    SHORT_ONLY,
    SLIGHTLY,
    THEFT,
    WITHIN,
    full,
    robbed,
    settled,
    violating,
    violators,
)

UUID = CARDS[0].uuid


def only(world: World) -> Verdict:
    (found,) = world.decision.verdicts
    return found


def suspects(world: World) -> set[str]:
    return set(world.decision.suspects)


def test_quiet_node_needs_no_lists() -> None:
    """While everybody is within the limits no list is asked for."""
    world = settled()
    world.run(3)

    assert set() == suspects(world)


def test_suspect_until_nothing_is_counted() -> None:
    """The card of a pod over its limit is listed at once, and until its time has drained."""
    world = violating(used=SLIGHTLY)
    world.run(4)
    during = suspects(world)
    world.hold("a", WITHIN)
    world.run(6)
    draining = suspects(world)
    world.run(13)

    assert [{UUID}, {UUID}, set()] == [during, draining, suspects(world)]


def test_unknown_list_is_asked_for_again() -> None:
    """A card without a list of processes is a suspect."""
    world = settled()
    world.unlisted = {1}
    world.run(1)

    assert {CARDS[1].uuid} == suspects(world)


def test_overcommitted_card() -> None:
    """Limits that add up to more than the card are told, a single one never counts as more."""
    world = settled(pod("a", limit=8 * GIB), pod("b", limit=90 * GIB))
    world.run(1)
    found = world.decision.findings[UUID]

    assert (8 * GIB + T4_BYTES, True) == (found.committed_bytes, found.overcommitted)
    assert not world.decision.findings[CARDS[1].uuid].overcommitted


def test_committed_without_memory_info() -> None:
    """Where the card does not say how large it is, its description does."""
    world = settled(pod("a", limit=90 * GIB))
    world.free[0] = None
    world.run(1)

    assert T4_BYTES == world.decision.findings[UUID].committed_bytes


def test_process_above_its_cap() -> None:
    """A process above its cap, its context and the slack is named; one at the slack is not."""
    cap = Cap(GIB, 512 * MIB)
    world = settled(pod("a", "main", "aside", caps={"main": cap}))
    allowed = cap.cap_bytes + cap.reserve_bytes
    world.hold("a", allowed + 256 * MIB)
    world.hold("a", 100 * MIB, container="aside")
    world.run(2)
    at_most = only(world).ineffective
    world.hold("a", allowed + 257 * MIB)
    world.run(3)
    pid = world.pids["a", "main"]

    assert () == at_most
    assert (Ineffective("main", pid, allowed + 257 * MIB, allowed),) == only(world).ineffective


def test_what_is_not_known_to_keep_to_a_cap_is_named_above_the_limit_alone() -> None:
    """Where nothing is known that reads its variables, a process within the limit is no fault."""
    cap = Cap(GIB, 512 * MIB, kept=False)
    world = settled(pod("a", caps={"main": cap}, limit=4 * GIB))
    world.hold("a", 4 * GIB)
    world.run(2)
    within = only(world).ineffective
    world.hold("a", 4 * GIB + 257 * MIB)
    world.run(3)
    told = cap.cap_bytes + cap.reserve_bytes

    assert () == within
    assert (Ineffective("main", world.pids["a", "main"], 4 * GIB + 257 * MIB, told),) == only(
        world
    ).ineffective


def test_container_over_its_part() -> None:
    """A container is over its part from the report margin on."""
    limits = {UUID: PodLimit(LIMIT, {"main": GIB})}
    world = violating(pod("a", limits=limits), used=GIB + 64 * MIB)
    world.run(1)
    at_most = only(world).containers_over
    world.hold("a", GIB + 65 * MIB)
    world.run(2)

    assert () == at_most
    assert (ContainerExcess("main", GIB + 65 * MIB, GIB),) == only(world).containers_over


def test_figures_of_a_verdict() -> None:
    """A verdict says for how long the pod has been over, by how much, and when it would be due."""
    world = violating()
    world.run(11)
    found = only(world)

    assert (True, 10.0, 20.0) == (found.over, found.over_seconds, found.due_seconds)
    assert 30.0 == world.decision.deadline
    assert found.use is not None
    assert (300 * MIB, LIMIT) == (found.use.excess_bytes, found.limit_bytes)


def test_excess_without_use() -> None:
    """Without a known use or limit there is no excess."""
    assert 0 == on_card(pod(), None).excess_bytes == on_card(pod(limit=None), GIB).excess_bytes


def test_due_in_the_grace() -> None:
    """In its grace a pod is due when grace and hold have passed."""
    world = World()
    world.add(pod(), OVER)
    world.run(21)

    assert (Outcome.GRACE, 130.0) == (only(world).outcome, only(world).due_seconds)
    assert 120.0 == world.decision.deadline


def test_due_on_a_short_card() -> None:
    """On a short card a pod is due within seconds."""
    world = full("a", SLIGHTLY, free=450 * MIB)
    world.run(2)
    found = world.decision.verdicts[0]

    assert (Outcome.HOLDING, 2.0, True) == (found.outcome, found.due_seconds, found.by_shortage)
    assert 3.0 == world.decision.deadline


def test_back_off() -> None:
    """A pod whose eviction was refused says when it is asked for again."""
    world = violating()
    world.run(30)
    refused_once = replace(world.memory.pods["uid-a"], refusals=Refusals(1, 0, 33.0))
    world.memory = replace(world.memory, pods={"uid-a": refused_once})
    world.run(32)

    assert (Outcome.BACKING_OFF, 2.0) == (only(world).outcome, only(world).due_seconds)
    assert 33.0 == world.decision.deadline


def test_no_deadline_without_time() -> None:
    """Nothing is due by time alone in a lower mode, while a brake holds, or within the limit."""
    capped, stopped, within = violating(pod(mode=Mode.CAP)), violating(), settled()
    stopped.reachable = False
    for world in (capped, stopped, within):
        world.run(11)

    assert [Outcome.HOLDING, Outcome.HOLDING, Outcome.WITHIN] == [
        only(world).outcome for world in (capped, stopped, within)
    ]
    assert {math.inf} == {world.decision.deadline for world in (capped, stopped, within)}


def test_retry_after() -> None:
    """The API server's wish for more time is granted, a shorter one is not."""
    policy = EvictionPolicy()
    longer = refused(NO_REFUSALS, 0.0, policy, by_budget_while_short=False, after=10.0)
    shorter = refused(NO_REFUSALS, 0.0, policy, by_budget_while_short=False, after=1.0)

    assert (10.0, 5.0) == (longer.retry_at, shorter.retry_at)


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
