"""What stops evictions that are due: brakes, budgets, and pods that do not end."""

from typing import Any

from agent.model.decision import Answer, Brake, Outcome
from agent.model.policy import Budgets, EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.world import Act, World
from tests.unit.agent.judge.scenes import (
    OVER,
    WITHIN,
    Scene,
    acts,
    blocked,
    full,
    one_on_each_card,
    play,
    robbed,
    scenes,
    settled,
    started,
    suspended,
    violating,
    violators,
)

UUID = CARDS[0].uuid
KILL = EvictionPolicy(last_resort_kill=True)


def both(first: World, **changes: Any) -> World:
    """Have pod `b` over its limit as well, and change `a`."""
    return first.hold("b", OVER).change("a", **changes)


def reported() -> World:
    """Make a node on which more pods than not are over their limits, and are only reported."""
    world = settled(pod("a"))
    for number, mode in enumerate((Mode.CAP, Mode.OBSERVE, Mode.CAP)):
        name = f"p{number}"
        world.add(pod(name, namespace=name, mode=mode), 2 * LIMIT, card=1)
        world.add(pod(f"q{number}", namespace=name, enforced=False), 2 * LIMIT, card=1)
    return world


@scenes(
    Scene(
        "the worse of two offenders first, the other after the answer",
        violating(pod("a"), pod("b")).hold("b", OVER + MIB),
        [Act(30, "b"), Act(31, "a")],
    ),
    Scene(
        "due together with a worse one",
        violating(pod("a"), pod("b")).hold("b", OVER + MIB),
        [Act(30, "b")],
        Outcome.QUEUED,
        until=31,
    ),
    Scene(
        "deleted by its owner with an endless grace: holds up no other, and is stuck after 40 s",
        both(violating(pod("a", grace_seconds=10**9), pod("b"))).at(
            5, "change", "a", terminating=True
        ),
        [Act(30, "b")],
        Outcome.STUCK,
        until=200,
    ),
    Scene("an evicted pod is terminating", violating(), acts(30), Outcome.TERMINATING, until=33),
    Scene(
        "a terminating pod that holds nothing",
        both(violating(pod("a"), pod("b"), used=0), terminating=True),
        [Act(30, "b")],
        until=40,
    ),
    Scene(
        "a neighbour on the other card of an evicted pod waits",
        violating(pod("a"), pod("b"), used=OVER + GIB)
        .hold("a", WITHIN, card=1)
        .hold("b", WITHIN)
        .hold("b", OVER, card=1),
        [Act(30, "a"), Act(31, "b")],
    ),
    Scene("more than half of all pods, of three namespaces", suspended()),
    Scene(
        "half of them",
        violators(6, "x", "y", "z"),
        [Act(30, f"p{number}") for number in range(3)],
        until=32,
    ),
    Scene(
        "of two namespaces",
        violators(3, "x", "y"),
        [Act(30, f"p{number}") for number in range(2)],
        until=32,
    ),
    Scene(
        "time stands still while suspended",
        suspended().at(110, "hold", "p2", WITHIN, card=2),
        [Act(139, "p0"), Act(139, "p1")],
        until=150,
    ),
    Scene(
        "another measure is not suspended",
        suspended().add(pod("other", measure="hami, MiB"), OVER, card=5),
        [Act(150, "other")],
        until=200,
    ),
    Scene(
        "pods that are only reported suspend nothing",
        reported().at(1, "hold", "a", OVER),
        acts(31),
        until=60,
    ),
    Scene(
        "a fourth of one namespace a minute later",
        one_on_each_card(4),
        [*(Act(30, f"p{number}") for number in range(3)), Act(90, "p3")],
        until=100,
    ),
    Scene(
        "a seventh of the node a minute later",
        one_on_each_card(7, namespaces=4),
        [*(Act(30, f"p{number}") for number in range(6)), Act(90, "p6")],
        until=100,
    ),
    Scene(
        "a pod that does not end is killed where that is allowed",
        violating(policy=KILL).set(leaves_after=1000).at(5, "change", "a", terminating=True),
        [Act(45, "a", "kill"), Act(50, "a", "kill")],
        until=60,
    ),
    Scene(
        "a kill waits for the brakes",
        violating(policy=KILL)
        .change("a", terminating=True)
        .each(lambda world, at: world.set(reachable=not 35 <= at < 60)),
        [Act(60, "a", "kill")],
        Outcome.STUCK,
        until=62,
    ),
    Scene(
        "two stuck pods one after the other",
        both(violating(pod("a"), pod("b"), policy=KILL), terminating=True)
        .change("b", terminating=True)
        .set(leaves_after=3),
        [Act(40, "a", "kill"), Act(41, "b", "kill")],
        until=72,
    ),
    Scene(
        "an accepted eviction that nothing follows is judged anew",
        violating().set(ignored=True),
        acts(30, 98),
        until=110,
    ),
)
def test_brakes(scene: Scene) -> None:
    """What stops evictions, and which of several is first."""
    play(scene)


@scenes(
    *(
        Scene(
            f"a budget on a card with room, budgets={budgets}",
            blocked(violating(policy=EvictionPolicy(budgets=budgets))),
            acts(30, 35, 45, 65, 105, 165, 225),
            until=250,
        )
        for budgets in Budgets
    ),
    Scene("a budget on a short card", blocked(full()), acts(3, 8, 18, 19, last="delete"), until=30),
    Scene(
        "a budget that the operator respects",
        blocked(full(policy=EvictionPolicy(budgets=Budgets.RESPECT))),
        acts(3, 8, 18, 38),
        until=60,
    ),
    Scene("any other failure", blocked(full(), Answer.FAILED), acts(3, 8, 18, 38), until=60),
    Scene(
        "refusals are forgotten after a while within the limit",
        blocked(violating()).each(
            lambda world, at: world.hold("a", WITHIN if 50 <= at < 150 else OVER)
        ),
        acts(30, 35, 45, 180, 185),
        until=186,
    ),
    Scene(
        "too large for the API to end",
        blocked(violating(), Answer.TOO_LARGE),
        acts(30, 35, 45, 65),
        Outcome.STUCK,
        until=67,
    ),
    Scene(
        "too large, and killing is allowed",
        blocked(violating(policy=KILL), Answer.TOO_LARGE),
        [Act(30, "a"), *(Act(second, "a", "kill") for second in (31, 41, 61))],
        until=62,
    ),
    Scene(
        "theft, while more is free than a context needs",
        blocked(robbed()),
        acts(9, 14, 24, 25, last="delete"),
        until=26,
    ),
)
def test_refusals(scene: Scene) -> None:
    """Only a budget's refusals count towards a deletion, and only on a short card."""
    play(scene)


def test_pod_gone() -> None:
    """A pod that is gone when it is to be evicted is not asked for again, nor held against any."""
    world = blocked(violating(), Answer.GONE).at(31, "remove", "a")

    assert acts(30) == world.run(200)
    assert {} == world.memory.offences


def test_brakes_of_the_start_and_the_api_server() -> None:
    """Right after the start a pod over its limit says so, as it does while pods are not known."""
    begun = started(started_at=0, policy=EvictionPolicy(grace_seconds=0, hold_seconds=0))
    begun.run(59)
    stale = violating(used=OVER + GIB).each(
        lambda world, at: world.set(reachable=not 20 < at <= 60)
    )

    assert Brake.START is begun.decision.verdicts[0].brake
    assert [Act(60, "a")] == begun.run(70)
    assert [Act(70, "a")] == stale.run(100)
