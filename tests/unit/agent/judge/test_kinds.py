"""Which pods, cards and processes are held to their limits, and which are not."""

import pytest

from agent.model.decision import Outcome
from agent.model.pod import PodLimit
from agent.model.policy import EvictionPolicy, EvictWhen
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, controller, pod
from tests.support.agent.world import Act, World
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY, full, settled, violating


def test_job_pod() -> None:
    """A Job's pod goes in the way that counts against its backoffLimit."""
    assert [Act(30, "a", "evict-job")] == violating(pod(controller=controller("Job"))).run(200)


@pytest.mark.parametrize(
    ("world", "outcome"),
    [
        pytest.param(
            violating(pod(exempt="it is a mirror pod", static_uid="0" * 32)),
            Outcome.EXEMPT,
            id="a mirror pod, which its kubelet would start again",
        ),
        pytest.param(
            violating(pod("a", injected=False), pod("b")),
            Outcome.UNINJECTED,
            id="a pod that the webhook never saw, as long as nobody is hurt",
        ),
        pytest.param(
            violating(pod(limit=None, undeclared="it asks for nothing"), used=14 * GIB),
            Outcome.UNDECLARED,
            id="a pod without a limit",
        ),
        pytest.param(
            violating(pod(enforced=False)),
            Outcome.NOT_ENFORCED,
            id="a pod whose limit is only implied: it is reported and not enforced",
        ),
        pytest.param(
            violating(pod(limit=14 * GIB), used=14 * GIB + 200 * MIB, free=0),
            Outcome.TOLERATED,
            id="a pod alone on a full card, where the short margin is not for it",
        ),
    ],
)
def test_who_stays(world: World, outcome: Outcome) -> None:
    """Some pods over their limits stay for ever, and it is known why."""
    assert [] == world.run(200)
    assert outcome is world.outcome("a")


def test_mps_card() -> None:
    """No client of the node's MPS server goes."""
    world = violating()
    world.mps = {0}

    assert [] == world.run(60)
    assert Outcome.MPS is world.outcome("a")


def test_idle() -> None:
    """A pod without any process on a card has a verdict too."""
    world = violating()
    world.holds.clear()

    assert [] == world.run(2)
    assert Outcome.IDLE is world.outcome("a")


@pytest.mark.parametrize(
    ("free", "expected"),
    [(220 * MIB, [Act(3, "a")]), (200 * MIB, [])],  # 300 MiB over: enough for 512, or not
)
def test_uninjected_on_a_short_card(free: int, expected: list[Act]) -> None:
    """
    A pod that the webhook never saw goes only where what it holds too much would end the shortage.
    """
    world = full("a", OVER, free=free)
    world.change("a", injected=False)

    assert expected == world.run(200)


def test_container_over_its_part_in_a_pod_within_its_limit() -> None:
    """A container over its part is named, and its pod stays."""
    limits = {CARDS[0].uuid: PodLimit(LIMIT, {"main": GIB, "aside": 2 * GIB})}
    world = violating(pod("a", "main", "aside", limits=limits), used=2 * GIB)

    assert [] == world.run(200)
    assert ["main"] == [item.container for item in world.decision.verdicts[0].containers_over]


def test_containers_add_up() -> None:
    """Containers that exceed the pod's limit only together make it go."""
    world = violating(pod("a", "main", "aside"), used=2 * GIB)
    world.hold("a", 2 * GIB, container="aside")

    assert [Act(30, "a")] == world.run(200)


def test_several_cards() -> None:
    """A limit holds for each card by itself: twice the limit on two cards is within it."""
    world = violating(used=LIMIT)
    world.hold("a", LIMIT, card=1)

    assert [] == world.run(200)


def test_over_on_two_cards() -> None:
    """A pod over its limit on two cards is evicted once."""
    world = violating()
    world.hold("a", OVER + GIB, card=1)

    assert [Act(30, "a")] == world.run(60)


def test_shared_pid_on_two_cards() -> None:
    """One process on two cards counts on each for what it holds there."""
    world = violating(used=2 * GIB)
    world.hold("a", 2 * GIB, card=1)

    assert [] == world.run(200)
    assert [Outcome.WITHIN, Outcome.WITHIN] == world.outcomes("a")


def test_gpu_process_of_no_pod() -> None:
    """Memory of no pod is found out after 30 s, and nobody pays for it."""
    world = settled()
    world.strangers[9] = (0, 13 * GIB)

    assert [] == world.run(30)
    assert world.decision.findings[CARDS[0].uuid].unattributed_bytes is None
    assert [] == world.run(31)
    assert 13 * GIB == world.decision.findings[CARDS[0].uuid].unattributed_bytes


def test_stranger_does_not_make_a_card_short() -> None:
    """A process of no pod is no neighbour: it may be the pod's own, unrecognised."""
    world = violating(used=SLIGHTLY)
    world.strangers[9] = (0, 12 * GIB)

    assert [] == world.run(200)


def test_pod_of_a_namespace_without_a_mode() -> None:
    """A pod of an unfenced namespace is never judged, but counts as a neighbour who can be hurt."""
    world = full("a", OVER, free=300 * MIB)
    world.change("b", namespace="free", mode=None)

    assert [Act(3, "a")] == world.run(200)
    assert [] == world.outcomes("b")


def test_evict_when_short() -> None:
    """With evict-when=short a pod over its limit stays until its neighbours run short."""
    policy = EvictionPolicy(evict_when=EvictWhen.SHORT)
    world = full("a", OVER, free=600 * MIB, policy=policy)
    world.at(100, world.hold, "c", 200 * MIB)
    world.add(pod("c", limit=200 * MIB))

    assert [Act(103, "a")] == world.run(200)


def test_shortage_unknown() -> None:
    """A card that does not say how much is free is not short."""
    world = violating(pod("a", injected=False), pod("b"))
    world.free[0] = None

    assert [] == world.run(80)


def test_next_pod_of_an_evicted_owner() -> None:
    """The pod that takes an evicted one's place goes after its grace and a minute."""
    world = violating(pod(controller=controller()))
    world.at(40, world.add, pod("b", controller=controller()), OVER)

    assert [Act(30, "a"), Act(220, "b")] == world.run(230)
