"""Nodes on which something is about to happen at second 0."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from agent.model.decision import Answer, Outcome
from agent.model.pod import PodOnNode
from agent.model.policy import EvictionPolicy, EvictWhen
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, pod
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES

OVER = LIMIT + 300 * MIB
SLIGHTLY = LIMIT + 100 * MIB  # over for reports and shortages, tolerated otherwise
WITHIN = GIB
THEFT = 12 * GIB
SHORT_ONLY = EvictionPolicy(evict_when=EvictWhen.SHORT)
LITTLE = 450 * MIB
"""So much free makes a card short."""


class Scene(NamedTuple):
    """
    What happens, which pods are evicted at which seconds, and what is said of pod `a` in the end.
    """

    what: str
    world: World
    acts: Sequence[Act] = ()
    outcome: Outcome | None = None
    until: int = 300


def scenes(*found: Scene) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scene", found, ids=[each.what for each in found])


def play(scene: Scene) -> None:
    world = scene.world

    assert [*scene.acts] == world.run(scene.until)
    if scene.outcome is not None:
        assert scene.outcome is world.outcome("a")


def settled(*pods: PodOnNode, used: int = WITHIN, policy: EvictionPolicy | None = None) -> World:
    """Make a node on which these pods have held a little memory for long."""
    world = World(policy=policy or EvictionPolicy())
    for item in pods or (pod(),):
        world.add(item, used)
    return world.settle_in()


def violating(
    *pods: PodOnNode,
    used: int = OVER,
    free: int | None = None,
    policy: EvictionPolicy | None = None,
) -> World:
    """
    Make a node on which pod `a` goes over its limit at second 0, with so much free on its card.
    """
    world = settled(*pods, policy=policy).hold("a", used)
    if free is not None:
        world.free[0] = free
    return world


def started(*pods: PodOnNode, used: int = OVER, **more: Any) -> World:
    """Make a node on which pods begin at second 0, each holding so much."""
    world = World(**more)
    for item in pods or (pod(),):
        world.add(item, used)
    return world


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


def full(
    used: int = SLIGHTLY,
    *,
    free: int = LITTLE,
    policy: EvictionPolicy | None = None,
    **more: Any,
) -> World:
    """
    Make a node on which pod `a` goes over its limit at second 0 on a card of which so little is
    free, and all the rest is held by a neighbour of another team that has what it was promised.
    """
    held = T4_BYTES - used - free
    neighbour = pod("b", limit=held, namespace="team-b")
    return settled(pod("a", **more), neighbour, policy=policy).hold("a", used).hold("b", held)


def robbed(*, free: int = 600 * MIB, policy: EvictionPolicy | None = None, **more: Any) -> World:
    """Make a node on which pod `a` takes what pod `b` was promised and does not hold yet."""
    held = T4_BYTES - THEFT - free
    neighbour = pod("b", limit=held + 2 * GIB, namespace="team-b")
    return settled(pod("a", **more), neighbour, policy=policy).hold("a", THEFT).hold("b", held)


def acts(*seconds: int, last: str = "evict") -> list[Act]:
    """Return that pod `a` is acted on at these seconds, the last time in another way."""
    return [*(Act(second, "a") for second in seconds[:-1]), Act(seconds[-1], "a", last)]


def blocked(world: World, answer: Answer = Answer.BLOCKED) -> World:
    return world.set(answer=answer)


def suspended() -> World:
    return violators(5, "x", "y", "z")
