"""
The policy as a table: who goes, and at which second after second 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.judge import Answer
from agent.model.decision import Brake, Outcome
from agent.model.memory import Memory
from agent.model.pod import PodLimit
from agent.model.policy import Budgets, EvictWhen, Policy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.unit.agent.builders import CARDS, LIMIT, controller, pod
from tests.unit.agent.world import Act, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.model.pod import PodOnNode

OVER = LIMIT + 300 * MIB
SLIGHTLY = LIMIT + 100 * MIB  # over for reports and shortages, tolerated otherwise
WITHIN = GIB


def settled(*pods: PodOnNode, used: int = WITHIN, policy: Policy | None = None) -> World:
    """
    Make a node on which these pods have held a little memory for long.
    """
    world = World(policy=policy or Policy())
    for item in pods or (pod(),):
        world.add(item, used)
    world.settle_in()
    return world


def test_over_for_the_hold() -> None:
    """
    A pod over its limit from second 0 on goes at second 30.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", OVER)

    assert [Act(30, "a")] == world.run(200)


def test_a_new_process_is_counted_from_its_second_list_on() -> None:
    """
    A pod that grows by a new process goes one second later, since one list proves nothing.
    """
    world = settled()
    world.restart("a")
    world.hold("a", OVER)

    assert [Act(31, "a")] == world.run(200)


def test_over_from_its_start() -> None:
    """
    A pod over its limit from its first sample on goes when grace and hold have passed.
    """
    world = World()
    world.add(pod(), OVER)

    assert [Act(150, "a")] == world.run(300)


def test_warm_up_spike_inside_the_grace() -> None:
    """
    A pod that peaks while it starts stays.
    """
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


def test_two_offenders() -> None:
    """
    The worse of two offenders goes first, the other once the first has left.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", OVER)
    world.hold("b", OVER + MIB)

    assert [Act(30, "b"), Act(35, "a")] == world.run(200)


def test_offender_that_its_owner_deleted_with_an_endless_grace() -> None:
    """
    A terminating pod holds up the next eviction on its card for 40 s, whose time stands still.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", OVER)
    world.hold("b", OVER)

    def script(second: int) -> None:
        if second == 5:
            world.change("a", terminating=True)

    assert [Act(70, "b")] == world.run(200, script)
    assert Outcome.STUCK is world.outcome("a")


def test_last_resort_kill() -> None:
    """
    Where the operator allows it, a pod that does not end has its processes killed.
    """
    world = settled(policy=Policy(last_resort_kill=True))
    world.hold("a", OVER)
    world.leaves_after = 1000

    def script(second: int) -> None:
        if second == 5:
            world.change("a", terminating=True)

    assert [Act(45, "a", "kill"), Act(50, "a", "kill")] == world.run(60, script)


@pytest.mark.parametrize("budgets", Budgets)
def test_budget_refuses_on_a_card_with_room(budgets: Budgets) -> None:
    """
    A refused eviction is asked for again, each time after twice the wait, and never forced.
    """
    world = settled(policy=Policy(budgets=budgets))
    world.hold("a", OVER)
    world.answer = Answer.BLOCKED

    expected = [Act(second, "a") for second in (30, 35, 45, 65, 105, 165, 225)]
    assert expected == world.run(250)


def test_budget_refuses_on_a_short_card() -> None:
    """
    After three refusals on a short card the pod is deleted, whatever its budget says.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", SLIGHTLY)
    world.free[0] = 100 * MIB
    world.answer = Answer.BLOCKED

    expected = [Act(3, "a"), Act(8, "a"), Act(18, "a"), Act(19, "a", "delete")]
    assert expected == world.run(30)


def test_budget_is_respected_where_the_operator_says_so() -> None:
    """
    With the setting respect no refusal leads to a deletion.
    """
    world = settled(pod("a"), pod("b"), policy=Policy(budgets=Budgets.RESPECT))
    world.hold("a", SLIGHTLY)
    world.free[0] = 100 * MIB
    world.answer = Answer.BLOCKED

    expected = [Act(second, "a") for second in (3, 8, 18, 38)]
    assert expected == world.run(60)


def test_uid_changed_under_the_same_name() -> None:
    """
    A pod that replaces another under its name starts from zero.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 20:
            world.change("a", uid="uid-next")
            world.restart("a")

    assert [Act(170, "a")] == world.run(300, script)


def test_pod_gone() -> None:
    """
    A pod that is gone when it is to be evicted is not asked for again.
    """
    world = settled()
    world.hold("a", OVER)
    world.answer = Answer.GONE

    def script(second: int) -> None:
        if second == 31:
            world.remove("a")

    assert [Act(30, "a")] == world.run(200, script)
    assert {} == world.memory.offences


def test_job_pod() -> None:
    """
    A Job's pod goes in the way that counts against its backoffLimit.
    """
    world = settled(pod(controller=controller("Job")))
    world.hold("a", OVER)

    assert [Act(30, "a", "evict-job")] == world.run(200)


def test_mirror_pod() -> None:
    """
    A mirror pod is never evicted, since its kubelet would start it again.
    """
    world = settled(pod(exempt="it is a mirror pod", static_uid="0" * 32))
    world.hold("a", OVER)

    assert [] == world.run(200)
    assert Outcome.EXEMPT is world.outcome("a")


def test_uninjected_on_a_card_with_room() -> None:
    """
    A pod that the webhook never saw stays as long as nobody is hurt.
    """
    world = settled(pod("a", injected=False), pod("b"))
    world.hold("a", OVER)

    assert [] == world.run(200)
    assert Outcome.UNINJECTED is world.outcome("a")


@pytest.mark.parametrize(
    ("free", "expected"),
    [(300 * MIB, [Act(3, "a")]), (200 * MIB, [])],  # 300 MiB over: enough for 512, or not
)
def test_uninjected_on_a_short_card(free: int, expected: list[Act]) -> None:
    """
    A pod that the webhook never saw goes only where what it holds too much would end the shortage.
    """
    world = settled(pod("a", injected=False), pod("b"))
    world.hold("a", OVER)
    world.free[0] = free

    assert expected == world.run(200)


def test_undeclared() -> None:
    """
    A pod without a limit is said to be so, and stays.
    """
    world = settled(pod(limit=None, undeclared="no container asks for GPU memory"))
    world.hold("a", 14 * GIB)

    assert [] == world.run(200)
    assert Outcome.UNDECLARED is world.outcome("a")


def test_container_over_its_part_in_a_pod_within_its_limit() -> None:
    """
    A container over its part is named, and its pod stays.
    """
    limits = {CARDS[0].uuid: PodLimit(LIMIT, {"main": GIB, "aside": 2 * GIB})}
    world = settled(pod("a", "main", "aside", limits=limits))
    world.hold("a", 2 * GIB)

    assert [] == world.run(200)
    assert world.decision is not None
    assert ["main"] == [item.container for item in world.decision.verdicts[0].containers_over]


def test_containers_add_up() -> None:
    """
    Containers that exceed the pod's limit only together make it go.
    """
    world = settled(pod("a", "main", "aside"))
    world.hold("a", 2 * GIB)
    world.hold("a", 2 * GIB, container="aside")

    assert [Act(31, "a")] == world.run(200)


def test_several_cards() -> None:
    """
    A limit holds for each card by itself: twice the limit on two cards is within it.
    """
    world = settled()
    world.hold("a", LIMIT)
    world.hold("a", LIMIT, card=1)

    assert [] == world.run(200)


def test_over_on_two_cards() -> None:
    """
    A pod over its limit on two cards is evicted once.
    """
    world = settled()
    world.hold("a", OVER)
    world.hold("a", OVER + GIB, card=1)

    assert [Act(30, "a")] == world.run(60)


def test_neighbour_on_the_other_card_of_an_evicted_pod_waits() -> None:
    """
    Nobody else goes in the same pass on any card that the evicted pod will free.
    """
    world = settled(pod("a"), pod("b"))
    world.hold("a", OVER + GIB)
    world.hold("a", WITHIN, card=1)
    world.hold("b", WITHIN)
    world.hold("b", OVER, card=1)

    assert [Act(30, "a"), Act(35, "b")] == world.run(200)


def test_shared_pid_on_two_cards() -> None:
    """
    One process on two cards counts on each for what it holds there.
    """
    world = settled()
    world.hold("a", 2 * GIB)
    world.hold("a", 2 * GIB, card=1)

    assert [] == world.run(200)
    assert [Outcome.WITHIN, Outcome.WITHIN] == world.outcomes("a")


def test_gpu_process_of_no_pod() -> None:
    """
    Memory of no pod is found out after 30 s, and nobody pays for it.
    """
    world = settled()
    world.strangers[9] = (0, 13 * GIB)

    assert [] == world.run(30)
    assert world.decision is not None
    assert world.decision.findings[CARDS[0].uuid].unattributed_bytes is None
    assert [] == world.run(31)
    assert 13 * GIB == world.decision.findings[CARDS[0].uuid].unattributed_bytes


def test_stranger_does_not_make_a_card_short() -> None:
    """
    A process of no pod is no neighbour: it may be the pod's own, unrecognised.
    """
    world = settled()
    world.hold("a", SLIGHTLY)
    world.strangers[9] = (0, 12 * GIB)

    assert [] == world.run(200)


def test_pod_of_a_namespace_without_a_mode() -> None:
    """
    A pod of an unfenced namespace is never judged, but counts as a neighbour who can be hurt.
    """
    world = settled(pod("a"), pod("other", namespace="free", mode=None))
    world.hold("other", 14 * GIB)
    world.hold("a", SLIGHTLY)
    world.free[0] = 0

    assert [Act(3, "a")] == world.run(200)
    assert [] == world.outcomes("other")


@pytest.mark.parametrize(("short", "expected"), [(False, [Act(150, "a")]), (True, [Act(63, "a")])])
def test_agent_just_started(short: bool, expected: list[Act]) -> None:  # noqa: FBT001 - a column
    """
    A new agent lets everybody be for 60 s, and gives each pod the grace of a new one.
    """
    world = World(started_at=0)
    world.add(pod("a"), OVER)
    world.add(pod("b"), WITHIN)
    world.free[0] = 100 * MIB if short else GIB

    assert expected == world.run(200)


def test_agent_restarted_in_the_middle_of_a_violation() -> None:
    """
    What an agent forgets by restarting is to the pod's favour.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 20:
            world.memory = Memory(second)
            world.use = None

    assert [Act(170, "a")] == world.run(300, script)


def violators(of: int, *namespaces: str) -> World:
    """
    Make a node of so many pods, the first of which, one in each namespace, go over their limits.
    """
    world = World(cards=8)
    for number in range(of):
        namespace = namespaces[number % len(namespaces)]
        world.add(pod(f"p{number}", namespace=namespace), WITHIN, card=number)
    world.settle_in()
    for number in range(len(namespaces)):
        world.hold(f"p{number}", OVER, card=number)
    return world


def test_half_the_node_violating() -> None:
    """
    More than half of the fenced pods over at once, of three namespaces, suspends evictions.
    """
    world = violators(5, "x", "y", "z")

    assert [] == world.run(200)
    assert world.decision is not None
    assert Brake.SUSPENDED is world.decision.brake


@pytest.mark.parametrize(("of", "namespaces"), [(6, ("x", "y", "z")), (3, ("x", "y"))])
def test_fewer_violators_suspend_nothing(of: int, namespaces: tuple[str, ...]) -> None:
    """
    Half of the pods, or pods of two namespaces, are ordinary offenders.
    """
    world = violators(of, *namespaces)

    expected = [Act(30, f"p{number}") for number in range(len(namespaces))]
    assert expected == world.run(32)


def test_suspension_lifted() -> None:
    """
    Time stands still while evictions are suspended, and goes on after.
    """
    world = violators(5, "x", "y", "z")

    def script(second: int) -> None:
        if second == 110:
            world.hold("p2", WITHIN, card=2)

    assert [Act(139, "p0"), Act(139, "p1")] == world.run(150, script)


def test_mode_raised_while_over() -> None:
    """
    A rise in mode starts every count of time from zero, the grace included.
    """
    world = settled(pod(mode=Mode.CAP))
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 100:
            assert Outcome.WOULD_EVICT is world.outcome("a")
            world.change("a", mode=Mode.EVICT)

    assert [Act(250, "a")] == world.run(400, script)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.CAP])
def test_lower_modes_say_who_would_go(mode: Mode) -> None:
    """
    Below evict nobody goes, and from second 30 on it is known who would.
    """
    world = settled(pod(mode=mode))
    world.hold("a", OVER)

    assert [] == world.run(30)
    assert Outcome.HOLDING is world.outcome("a")
    assert [] == world.run(31)
    assert Outcome.WOULD_EVICT is world.outcome("a")


def test_kill_switch_in_the_middle_of_a_violation() -> None:
    """
    Lowering the mode stops an eviction that is a second away.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 30:
            world.change("a", mode=Mode.CAP)

    assert [] == world.run(200, script)


def test_namespace_word_lowered_under_running_pods() -> None:
    """
    A limit that falls below what a pod holds starts the time from zero.
    """
    world = settled()
    world.hold("a", 2 * GIB)

    def script(second: int) -> None:
        if second == 50:
            limits = {item.uuid: PodLimit(GIB) for item in CARDS}
            world.change("a", limits=limits)

    assert [Act(80, "a")] == world.run(200, script)


def test_limit_lowered_while_over() -> None:
    """
    Time over the old limit is not time over the new one.
    """
    world = settled()
    world.hold("a", OVER)

    def script(second: int) -> None:
        if second == 20:
            world.change("a", limits={item.uuid: PodLimit(GIB) for item in CARDS})

    assert [Act(50, "a")] == world.run(200, script)


def test_one_tenant_alone_on_a_full_card() -> None:
    """
    A pod alone on a full card takes nothing from anybody: the short margin is not for it.
    """
    world = settled(pod(limit=14 * GIB))
    world.hold("a", 14 * GIB + 200 * MIB)
    world.free[0] = 0

    assert [] == world.run(200)
    assert Outcome.TOLERATED is world.outcome("a")


def script_of(change: Callable[[], None], at: int) -> Callable[[int], None]:
    """
    Make a script of one change.
    """
    return lambda second: change() if second == at else None


def test_evict_when_short() -> None:
    """
    With evict-when=short a pod over its limit stays until its neighbours run short.
    """
    world = settled(pod("a"), pod("b"), policy=Policy(evict_when=EvictWhen.SHORT))
    world.hold("a", OVER)

    def shorten() -> None:
        world.free[0] = 0

    assert [Act(103, "a")] == world.run(200, script_of(shorten, 100))
