"""
Brakes, repeat offenders and samples that are missing: what delays an eviction, to the second.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.judge import Answer
from agent.judge.offenders import MOST_REMEMBERED, hold_seconds, offended
from agent.model.decision import Brake, Outcome
from agent.model.policy import Policy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.unit.agent.builders import CARDS, LIMIT, controller, pod
from tests.unit.agent.judge.test_policy import OVER, SLIGHTLY, WITHIN, settled
from tests.unit.agent.world import Act, World


def one_on_each_card(count: int, *, namespaces: int = 1) -> World:
    """
    Make a node of pods that go over their limits, each on a card of its own, and as many that do
    not.
    """
    world = World(cards=8)
    for number in range(count):
        world.add(pod(f"p{number}", namespace=f"n{number % namespaces}"), WITHIN, card=number)
        world.add(pod(f"good{number}", namespace="good"), WITHIN, card=number)
    world.settle_in()
    for number in range(count):
        world.hold(f"p{number}", OVER, card=number)
    return world


def test_cap_of_a_namespace() -> None:
    """
    A fourth pod of one namespace goes a minute after the first three.
    """
    world = one_on_each_card(4)

    expected = [Act(30, "p0"), Act(30, "p1"), Act(30, "p2"), Act(90, "p3")]
    assert expected == world.run(100)


def test_cap_of_the_node() -> None:
    """
    A seventh pod of the node goes a minute after the first six.
    """
    world = one_on_each_card(7, namespaces=4)

    expected = [*(Act(30, f"p{number}") for number in range(6)), Act(90, "p6")]
    assert expected == world.run(100)


def test_reason_of_a_cap() -> None:
    """
    A pod that a cap keeps says which.
    """
    world = one_on_each_card(4)
    world.run(31)
    assert world.decision is not None
    (kept,) = (item for item in world.decision.verdicts if item.pod.name == "p3")

    assert (Outcome.BRAKED, Brake.NAMESPACE_CAP) == (kept.outcome, kept.brake)


def test_api_server_out_of_reach() -> None:
    """
    While the pods are not known for certain nobody goes, and time stands still.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        world.reachable = not 20 < second <= 60

    assert [Act(70, "a")] == world.run(100, script)


def test_reason_of_the_start() -> None:
    """
    Right after the agent's start a pod over its limit says that it is still left alone.
    """
    world = World(started_at=0, policy=Policy(grace_seconds=0, hold_seconds=0))
    world.add(pod(), OVER)
    world.run(59)
    assert world.decision is not None

    assert Brake.START is world.decision.verdicts[0].brake
    assert [Act(60, "a")] == world.run(70)


def test_missing_samples_freeze() -> None:
    """
    Seconds that nobody saw count neither way: ten of them, and the one before, come on top.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        world.unlisted = {0} if 10 <= second < 20 else set()

    # 9 s by second 9; back at 20, confirmed again at 21.
    assert [Act(42, "a")] == world.run(100, script)


def test_unknown_use_never_acts() -> None:
    """
    A pod whose use is unknown stays, however long it has been over before.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 30:
            world.hold("a", None)

    assert [] == world.run(80, script)
    assert Outcome.UNKNOWN is world.outcome("a")


def test_shortage_unknown() -> None:
    """
    A card that does not say how much is free is not short.
    """
    world = settled(pod("a", injected=False), pod("b"))
    world.hold("a", OVER)
    world.free[0] = None

    assert [] == world.run(80)


def test_tick_that_comes_late() -> None:
    """
    A gap of more than three intervals between two samples does not count.
    """
    world = settled()
    world.hold("a", OVER)
    world.run(10)
    world.now += 4

    assert [Act(35, "a")] == world.run(60)


def test_list_that_is_not_renewed() -> None:
    """
    A list judged once is no evidence again: the pod waits for the next one.
    """
    world = settled()
    world.hold("a", OVER)
    world.run(30)
    world.renewed = False
    world.run(31)

    assert [] == world.acts
    assert Outcome.NOT_RENEWED is world.outcome("a")


def test_process_replaced_in_the_middle() -> None:
    """
    A new process is not held against its pod until a second list confirms it.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 20:
            world.restart("a")

    # 20 s by second 20, unconfirmed there; over again from 21 on.
    assert [Act(31, "a")] == world.run(60, script)


def test_unconfirmed() -> None:
    """
    A pod over its limit only by a process of one list says so.
    """
    world = settled()
    world.restart("a")
    world.hold("a", OVER)
    world.run(1)

    assert Outcome.UNCONFIRMED is world.outcome("a")


def test_memory_freed_for_a_moment() -> None:
    """
    A pod that lets go for 2 s loses one second, not all of them.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 20:
            world.holds.clear()
        if second == 22:
            world.hold("a", OVER)

    # 20 s by second 20, 19 s by 22, unconfirmed there; over again from 23 on.
    assert [Act(34, "a")] == world.run(60, script)


@pytest.mark.parametrize(("before", "expected"), [(0, 30), (1, 60), (2, 300), (3, 1800), (9, 1800)])
def test_hold_of_a_repeat_offender(before: int, expected: int) -> None:
    """
    An owner evicted before gets a longer hold each time.
    """
    world = settled(pod(controller=controller()))
    for _ in range(before):
        offences = offended(
            world.memory.offences, pod(controller=controller()).lineage, -60.0, Policy()
        )
        world.memory = replace(world.memory, offences=offences)
    world.hold("a", OVER)
    world.run(1)
    assert world.decision is not None

    assert expected == world.decision.verdicts[0].due_seconds


def test_next_pod_of_an_evicted_owner() -> None:
    """
    The pod that takes an evicted one's place goes after its grace and a minute.
    """
    world = settled(pod(controller=controller()))
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 40:
            world.add(pod("b", controller=controller()), OVER)

    assert [Act(30, "a"), Act(220, "b")] == world.run(230, script)


def test_repeat_offender_on_a_short_card() -> None:
    """
    A shortage does not wait longer for those who caused one before.
    """
    world = settled(pod("a", controller=controller()), pod("b"))
    lineage = world.pods["a"].lineage
    world.memory = replace(world.memory, offences=offended({}, lineage, -60.0, Policy()))
    world.hold("a", SLIGHTLY)
    world.free[0] = 0

    assert [Act(3, "a")] == world.run(10)


def test_offences_are_forgotten() -> None:
    """
    After a day an owner is like any other, and what is remembered stays bounded.
    """
    policy = Policy()
    old = offended({}, ("n", "Pod", "old"), 0.0, policy)
    later = policy.repeated_memory_seconds + 1
    many = old
    for number in range(MOST_REMEMBERED + 1):
        many = offended(many, ("n", "Pod", f"p{number}"), float(number), policy)

    assert 30 == hold_seconds(old, ("n", "Pod", "old"), later, policy)
    assert [("n", "Pod", "next")] == list(offended(old, ("n", "Pod", "next"), later, policy))
    assert MOST_REMEMBERED == len(many)
    assert ("n", "Pod", "old") not in many


def test_no_ladder() -> None:
    """
    Without longer holds every time is the first.
    """
    policy = Policy(repeated_hold_seconds=())
    before = offended({}, ("n", "Pod", "a"), 0.0, policy)

    assert 30 == hold_seconds(before, ("n", "Pod", "a"), 1.0, policy)


def test_failed_eviction_is_never_forced() -> None:
    """
    Only a budget's refusals count towards a deletion; other failures back off.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", SLIGHTLY)
    world.free[0] = 0
    world.answer = Answer.FAILED

    assert [Act(second, "a") for second in (3, 8, 18, 38)] == world.run(60)


def test_refusals_are_forgotten() -> None:
    """
    A pod that was within its limit for long enough is asked for at once when it is over again.
    """
    world = settled()
    world.hold("a", OVER)
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
    world = settled()
    world.hold("a", OVER)
    world.answer = Answer.ACCEPTED
    world.ignored = True

    assert [Act(30, "a"), Act(99, "a")] == world.run(110)


def test_waiting_for_a_terminating_pod() -> None:
    """
    A pod behind a terminating one says why it waits, and the terminating one that it is going.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", OVER + GIB)
    world.hold("b", OVER)
    world.run(33)

    assert Outcome.TERMINATING is world.outcome("a")
    assert Outcome.BRAKED is world.outcome("b")


def test_terminating_pod_that_holds_nothing() -> None:
    """
    A terminating pod that has given its memory back holds nobody up.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", 0)
    world.change("a", terminating=True)
    world.hold("b", OVER)

    assert [Act(30, "b")] == world.run(40)


def test_stuck_pod_waits_for_brakes() -> None:
    """
    A kill waits for the brakes like any eviction.
    """
    world = settled(policy=Policy(last_resort_kill=True))
    world.hold("a", OVER)
    world.change("a", terminating=True)

    def script(second: int) -> None:
        world.reachable = not 35 <= second < 60

    assert [Act(60, "a", "kill")] == world.run(62, script)
    assert Outcome.STUCK is world.outcome("a")


def test_two_stuck_pods() -> None:
    """
    Two stuck pods on one card are killed one after the other.
    """
    world = settled(pod("a"), pod("b"), policy=Policy(last_resort_kill=True))
    for name in ("a", "b"):
        world.hold(name, OVER)
        world.change(name, terminating=True)
    world.leaves_after = 3

    # They do not hold each other up from second 40 on, and their time stood still before.
    assert [Act(69, "a", "kill"), Act(70, "b", "kill")] == world.run(72)


def test_queued() -> None:
    """
    Who is due together with a worse offender on the same card is queued.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", OVER)
    world.hold("b", OVER + MIB)
    world.run(31)

    assert Outcome.QUEUED is world.outcome("a")


def test_mps_card() -> None:
    """
    On a card with MPS clients nobody goes.
    """
    world = settled()
    world.hold("a", OVER)
    world.mps = {0}

    assert [] == world.run(60)
    assert Outcome.MPS is world.outcome("a")


def test_implied_limit() -> None:
    """
    A limit that is only implied is reported and not enforced.
    """
    world = settled(pod(enforced=False))
    world.hold("a", OVER)

    assert [] == world.run(60)
    assert Outcome.NOT_ENFORCED is world.outcome("a")


def test_idle() -> None:
    """
    A pod without any process on a card has a verdict too.
    """
    world = settled()
    world.holds.clear()
    world.run(2)

    assert Outcome.IDLE is world.outcome("a")


def test_mode_lowered_keeps_the_time() -> None:
    """
    Lowering the mode resets nothing: who was over stays known as such.
    """
    world = settled()
    world.hold("a", OVER)
    world.run(20)
    world.change("a", mode=Mode.OBSERVE)
    world.run(31)

    assert Outcome.WOULD_EVICT is world.outcome("a")


def test_limit_raised() -> None:
    """
    A limit raised above what a pod holds ends the violation.
    """
    world = settled()
    world.hold("a", OVER)
    world.run(20)
    raised = replace(world.pods["a"].limits[CARDS[0].uuid], limit_bytes=2 * LIMIT)
    world.change("a", limits={CARDS[0].uuid: raised})

    assert [] == world.run(60)
    assert Outcome.WITHIN is world.outcome("a")
