"""What is said about cards, containers and processes, and which lists are wanted next."""

from dataclasses import replace

from agent.judge.reason import refused
from agent.model.decision import ContainerExcess, Ineffective, Outcome, Verdict
from agent.model.memory import NO_REFUSALS, Refusals
from agent.model.pod import Cap, PodLimit
from agent.model.policy import EvictionPolicy
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, on_card, pod
from tests.support.agent.world import World
from tests.support.builders import T4_BYTES
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY, WITHIN, full, settled, violating

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


def test_due_on_a_short_card() -> None:
    """On a short card a pod is due within seconds."""
    world = full("a", SLIGHTLY, free=450 * MIB)
    world.run(2)
    found = world.decision.verdicts[0]

    assert (Outcome.HOLDING, 2.0, True) == (found.outcome, found.due_seconds, found.by_shortage)


def test_back_off() -> None:
    """A pod whose eviction was refused says when it is asked for again."""
    world = violating()
    world.run(30)
    refused_once = replace(world.memory.pods["uid-a"], refusals=Refusals(1, 0, 33.0))
    world.memory = replace(world.memory, pods={"uid-a": refused_once})
    world.run(32)

    assert (Outcome.BACKING_OFF, 2.0) == (only(world).outcome, only(world).due_seconds)


def test_retry_after() -> None:
    """The API server's wish for more time is granted, a shorter one is not."""
    policy = EvictionPolicy()
    longer = refused(NO_REFUSALS, 0.0, policy, by_budget_while_short=False, after=10.0)
    shorter = refused(NO_REFUSALS, 0.0, policy, by_budget_while_short=False, after=1.0)

    assert (10.0, 5.0) == (longer.retry_at, shorter.retry_at)
