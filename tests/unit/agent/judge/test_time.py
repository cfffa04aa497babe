"""Time over a limit: which pod goes at which second, and what starts the time from zero."""

from dataclasses import replace

import pytest

from agent.judge.reason import MOST_REMEMBERED, offended
from agent.judge.time import BucketRules, is_due, pour
from agent.model.decision import Outcome
from agent.model.memory import EMPTY, Memory
from agent.model.pod import PodLimit
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, controller, pod
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.unit.agent.judge.scenes import (
    OVER,
    SHORT_ONLY,
    SLIGHTLY,
    WITHIN,
    full,
    robbed,
    settled,
    violating,
)


def test_over_for_the_hold() -> None:
    """A pod over its limit from second 0 on goes at second 30."""
    world = violating(pod("a"), pod("b"))

    assert [Act(30, "a")] == world.run(200)


def test_a_new_process_is_counted_from_its_first_list_on() -> None:
    """A pod that grows by a new process goes no later than one that grows by an old one."""
    world = settled()
    world.restart("a")
    world.hold("a", OVER)

    assert [Act(30, "a")] == world.run(200)


def test_a_new_process_each_second() -> None:
    """A pod that is over its limit by another process in every list goes like any other."""
    world = settled()
    world.hold("a", OVER)

    assert [Act(30, "a")] == world.run(200, lambda _: world.restart("a"))


def test_over_from_its_start() -> None:
    """A pod over its limit from its first sample on goes when grace and hold have passed."""
    world = World()
    world.add(pod(), OVER)

    assert [Act(150, "a")] == world.run(300)


def test_warm_up_spike_inside_the_grace() -> None:
    """A pod that peaks while it starts stays."""
    world = World()
    world.add(pod(), OVER)

    def script(second: int) -> None:
        world.hold("a", OVER if second < 119 else WITHIN)

    assert [] == world.run(400, script)


@pytest.mark.parametrize(
    ("over", "under", "expected"),
    [
        (4, 4, [Act(114, "a")]),  # gains 2 s in each 8 s, up to the hold
        (9, 1, [Act(35, "a")]),  # gains 8.5 s in each 10 s
        (29, 58, []),  # drains all that it gains
        (1, 2, []),  # a peak now and then
    ],
)
def test_sawtooth(over: int, under: int, expected: list[Act]) -> None:
    """
    A pod that swings over its limit goes once the seconds over outweigh half the seconds under.
    """
    world = settled()

    def script(second: int) -> None:
        world.hold("a", OVER if second % (over + under) < over else WITHIN)

    assert expected == world.run(400, script)


def test_uid_changed_under_the_same_name() -> None:
    """A pod that replaces another under its name starts from zero."""
    world = violating()
    world.at(20, world.change, "a", uid="uid-next")
    world.at(20, world.restart, "a")

    assert [Act(170, "a")] == world.run(300)


@pytest.mark.parametrize(("short", "expected"), [(False, [Act(150, "a")]), (True, [Act(63, "a")])])
def test_agent_just_started(short: bool, expected: list[Act]) -> None:  # noqa: FBT001 - a column
    """A new agent lets everybody be for 60 s, and gives each pod the grace of a new one."""
    world = World(started_at=0)
    world.add(pod("a"), OVER)
    held = T4_BYTES - OVER - (300 * MIB if short else GIB)
    world.add(pod("b", limit=held), held)

    assert expected == world.run(200)


def test_agent_restarted_in_the_middle_of_a_violation() -> None:
    """What an agent forgets by restarting is to the pod's favour."""
    world = violating()
    world.at(20, setattr, world, "memory", Memory(20))
    world.at(20, setattr, world, "use", None)

    assert [Act(170, "a")] == world.run(300)


def test_mode_raised_while_over() -> None:
    """A rise in mode starts every count of time from zero, the grace included."""
    world = violating(pod(mode=Mode.CAP))

    def script(second: int) -> None:
        if second == 100:
            assert Outcome.WOULD_EVICT is world.outcome("a")
            world.change("a", mode=Mode.EVICT)

    assert [Act(250, "a")] == world.run(400, script)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.CAP])
def test_lower_modes_say_who_would_go(mode: Mode) -> None:
    """Below evict nobody goes, and from second 30 on it is known who would."""
    world = violating(pod(mode=mode))

    assert [] == world.run(30)
    assert Outcome.HOLDING is world.outcome("a")
    assert [] == world.run(31)
    assert Outcome.WOULD_EVICT is world.outcome("a")


def test_kill_switch_in_the_middle_of_a_violation() -> None:
    """Lowering the mode stops an eviction that is a second away."""
    world = violating()
    world.at(30, world.change, "a", mode=Mode.CAP)

    assert [] == world.run(200)


def test_namespace_word_lowered_under_running_pods() -> None:
    """A limit that falls below what a pod holds starts the time from zero."""
    world = violating(used=2 * GIB)
    world.at(50, world.change, "a", limits={item.uuid: PodLimit(GIB) for item in CARDS})

    assert [Act(80, "a")] == world.run(200)


def test_limit_lowered_while_over() -> None:
    """Time over the old limit is time over the new, smaller one."""
    world = violating()
    world.at(20, world.change, "a", limits={item.uuid: PodLimit(GIB) for item in CARDS})

    assert [Act(30, "a")] == world.run(200)


def test_missing_samples_freeze() -> None:
    """Seconds that nobody saw count neither way: ten of them, and the one before, come on top."""
    world = violating()

    def script(second: int) -> None:
        world.unlisted = {0} if 10 <= second < 20 else set()

    # 9 s by second 9; back at 20.
    assert [Act(41, "a")] == world.run(100, script)


def test_unknown_use_never_acts() -> None:
    """A pod whose use is unknown stays, however long it has been over before."""
    world = violating()
    world.at(30, world.hold, "a", None)

    assert [] == world.run(80)
    assert Outcome.UNKNOWN is world.outcome("a")


def test_tick_that_comes_late() -> None:
    """A gap of more than three intervals between two samples does not count."""
    world = violating()
    world.run(10)
    world.now += 4

    assert [Act(35, "a")] == world.run(60)


def test_list_that_is_not_renewed() -> None:
    """A list judged once is no evidence again: the pod waits for the next one."""
    world = violating()
    world.run(30)
    world.renewed = False
    world.run(31)

    assert [] == world.acts
    assert Outcome.NOT_RENEWED is world.outcome("a")


def test_process_replaced_in_the_middle() -> None:
    """A pod gains nothing by giving its memory to a new process."""
    world = violating()
    world.at(20, world.restart, "a")

    assert [Act(30, "a")] == world.run(60)


def test_process_replaced_under_its_pid() -> None:
    """A process that another one's PID fell to is not held against its pod until a second list."""
    world = violating()
    world.at(20, world.began.update, {"a": -400.0})

    # 20 s by second 20, unconfirmed there; over again from 21 on.
    assert [Act(31, "a")] == world.run(60)


def test_unconfirmed() -> None:
    """A pod over its limit only by a process that another one's PID fell to says so."""
    world = settled()
    world.began["a"] = -400.0
    world.hold("a", OVER)
    world.run(1)

    assert Outcome.UNCONFIRMED is world.outcome("a")


def test_memory_freed_for_a_moment() -> None:
    """A pod that lets go for 2 s loses one second, not all of them."""
    world = violating()
    world.at(20, world.holds.clear)
    world.at(22, world.hold, "a", OVER)

    # 20 s by second 20, 19 s by 22.
    assert [Act(33, "a")] == world.run(60)


def test_mode_lowered_keeps_the_time() -> None:
    """Lowering the mode resets nothing: who was over stays known as such."""
    world = violating()
    world.run(20)
    world.change("a", mode=Mode.OBSERVE)
    world.run(31)

    assert Outcome.WOULD_EVICT is world.outcome("a")


def test_limit_raised() -> None:
    """A limit raised above what a pod holds ends the violation."""
    world = violating()
    world.run(20)
    raised = replace(world.pods["a"].limits[CARDS[0].uuid], limit_bytes=2 * LIMIT)
    world.change("a", limits={CARDS[0].uuid: raised})

    assert [] == world.run(60)
    assert Outcome.WITHIN is world.outcome("a")


@pytest.mark.parametrize(("ends_at", "due"), [(3.0, True), (3.01, True), (2.99, False)])
def test_a_hold_is_over_with_the_sample_that_should_end_it(ends_at: float, *, due: bool) -> None:
    """A sample that comes a hair early does not end a hold; the next is due when it ends."""
    bucket = EMPTY
    for at in (0.0, 1.0, 2.0, ends_at):
        bucket = pour(bucket, BucketRules(at, 3.0, 3.0), over=True)

    assert due is is_due(bucket, 3.0)


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
