"""Limits that move: what was spent over a larger limit was spent over the smaller one, too."""

from agent.model.decision import Outcome
from agent.model.pod import PodLimit
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.world import Act, World
from tests.unit.agent.judge.scenes import robbed, settled, violating

CLAIM = 6 * GIB


def limits(limit: int | None) -> dict[str, PodLimit]:
    return {} if limit is None else {item.uuid: PodLimit(limit) for item in CARDS}


def move(world: World, to: dict[str, PodLimit], name: str = "a") -> None:
    """Give a pod that is still there another limit."""
    if name in world.pods:
        world.change(name, limits=to)


def claimed() -> dict[str, PodLimit]:
    """Build what every pod of one claim has of it."""
    return {item.uuid: PodLimit(CLAIM, claims=(("claim/r", CLAIM),)) for item in CARDS}


def test_a_limit_that_falls_a_little_in_each_look() -> None:
    """A limit that falls by 1 MiB in each look gives no time back."""
    world = violating(used=12 * GIB)

    def script(second: int) -> None:
        move(world, limits(3 * GIB - second * MIB))

    assert [Act(9, "a")] == world.run(100, script)[:1]


def test_a_limit_that_falls_in_each_look_of_a_short_card() -> None:
    """Neither does it on a card that is short."""
    world = robbed()

    def script(second: int) -> None:
        move(world, limits(3 * GIB - second * MIB))

    assert [Act(9, "a")] == world.run(100, script)[:1]


def test_a_limit_that_goes_up_and_down() -> None:
    """A limit that swings below what a pod holds changes nothing."""
    world = violating(used=5 * GIB)

    def script(second: int) -> None:
        move(world, limits(3 * GIB if second % 2 else 4 * GIB))

    assert [Act(30, "a")] == world.run(100, script)


def test_a_limit_that_swings_about_what_is_held() -> None:
    """
    A pod is over for the seconds in which the limit was below what it holds, and no others; those
    in between take back half as much.
    """
    world = violating(used=5 * GIB)

    def script(second: int) -> None:
        move(world, limits(3 * GIB if second % 10 < 9 else 8 * GIB))

    assert [Act(35, "a")] == world.run(100, script)


def test_a_limit_that_falls_below_what_a_pod_had_a_right_to() -> None:
    """A pod that was within the limit has all of the time from the second in which it falls."""
    world = settled(used=2 * GIB)
    world.at(50, move, world, limits(GIB))

    assert [Act(80, "a")] == world.run(100)


def test_a_limit_that_is_unknown_for_a_second() -> None:
    """While nothing says what a pod may hold no time is added, and none is lost."""
    world = violating()

    def script(second: int) -> None:
        move(world, limits(3 * GIB if second % 10 else None))

    # Nine of each ten seconds begin with a limit.
    assert [Act(34, "a")] == world.run(100, script)


def test_nobody_goes_while_the_limit_is_unknown() -> None:
    """A pod stays for as long as nothing says what it may hold."""
    world = violating()
    world.at(29, move, world, {})

    assert [] == world.run(100)
    assert Outcome.UNDECLARED is world.outcome("a")


def test_a_pod_without_a_limit_that_lets_go_is_forgotten() -> None:
    """A pod that holds nothing any more and has no limit is held against nothing."""
    world = violating()
    world.at(20, move, world, {})
    world.at(21, world.holds.clear)
    world.run(80)

    assert {} == world.memory.pods["uid-a"].watches


def sharing(thief: int, partner: int) -> World:
    """Make a node on which two pods use one claim."""
    world = settled(pod("a", limits=claimed()), pod("partner", limits=claimed()))
    world.hold("a", thief)
    world.hold("partner", partner)
    return world


def test_a_partner_that_grows_in_each_look() -> None:
    """A pod that holds more than its claim gains nothing from a partner that grows."""
    world = sharing(8 * GIB, GIB)

    def script(second: int) -> None:
        world.hold("partner", GIB + second * MIB)

    assert [Act(25, "a")] == world.run(100, script)[:1]


def test_a_partner_that_leaves_the_claim_and_joins_it_again() -> None:
    """Nor from a partner that is no user of the claim in every other look."""
    world = sharing(9 * GIB, GIB)

    def script(second: int) -> None:
        move(world, claimed() if second % 2 else limits(3 * GIB), "partner")

    assert 15 <= world.run(100, script)[0].second <= 30
    assert "a" == world.acts[0].pod


def test_an_innocent_partner_stays() -> None:
    """A partner within its equal part stays, whatever the other one holds."""
    world = sharing(8 * GIB, 3 * GIB)
    world.run(100)

    assert {"a"} == {act.pod for act in world.acts}
