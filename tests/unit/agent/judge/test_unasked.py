"""Pods that ask for no GPU and use one, where their namespace evicts such pods."""

from typing import Any

import pytest

from agent.events.notices import notices
from agent.fence import PodContext
from agent.model.decision import Outcome
from agent.model.pod import PodOnNode
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, container_id
from tests.support.agent.builders import pod as fenced
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.support.builders import pod as raw_pod

EVICT = {names.UNDECLARED_USE: "evict"}
CEILING = {**EVICT, names.MAX_MEMORY: "2Gi"}


def unasked(
    words: dict[str, str], name: str = "a", namespace: str = "team-a", mode: str = "evict"
) -> PodOnNode:
    """Read a pod that asks for nothing, which no webhook is called for."""
    raw: dict[str, Any] = raw_pod()
    raw["metadata"] |= {"name": name, "uid": f"uid-{name}", "namespace": namespace}
    identity = f"containerd://{container_id(name)}"
    raw["status"] = {"containerStatuses": [{"name": "main", "containerID": identity}]}
    ground = PodContext({names.MODE: mode}, words, Mode.EVICT, CARDS, Units())
    return read_pod_on_node(raw, ground)


def holding(*pods: PodOnNode, used: int) -> World:
    world = World(cards=8)
    for card, item in enumerate(pods):
        world.add(item, 0, card=card)
    world.settle_in()
    for card, item in enumerate(pods):
        world.hold(item.name, used, card=card)
    return world


@pytest.mark.parametrize(
    ("words", "used", "expected"),
    [
        ({}, 8 * GIB, []),
        ({names.UNDECLARED_USE: "report"}, 8 * GIB, []),
        (EVICT, GIB, [Act(30, "a")]),
        (EVICT, 200 * MIB, []),  # within the margin
        (CEILING, 2 * GIB + 200 * MIB, []),
        (CEILING, 3 * GIB, [Act(30, "a")]),
    ],
)
def test_its_namespace_says_what_becomes_of_it(
    words: dict[str, str], used: int, expected: list[Act]
) -> None:
    """It is reported, or evicted like any other pod that is over its limit."""
    assert expected == holding(unasked(words), used=used).run(200)


def test_below_evict_it_is_only_said() -> None:
    """In mode cap it stays, and it is said that it would go."""
    world = holding(unasked(EVICT, mode="cap"), used=GIB)

    assert [] == world.run(40)
    assert Outcome.WOULD_EVICT is world.outcome("a")


def test_many_of_them_look_like_no_wrong_unit() -> None:
    """Where they may hold nothing all that hold something are over, and nothing is suspended."""
    pods = [unasked(EVICT, f"p{number}", f"n{number}") for number in range(4)]

    assert 4 == len(holding(*pods, used=GIB).run(40))


def test_nothing_is_promised_to_them() -> None:
    """What they may hold at most makes no card short of it."""
    world = World(cards=1)
    world.add(unasked(CEILING), 100 * MIB)
    world.add(fenced("b", limit=13 * GIB), 13 * GIB)
    world.run(1)

    assert 0 == world.decision.findings[CARDS[0].uuid].owed_bytes


def test_a_shortage_that_they_make_ends() -> None:
    """They go for a shortage like others, though no webhook saw them."""
    world = World(cards=1)
    world.add(unasked(EVICT), 0)
    world.add(fenced("b", limit=10 * GIB), GIB)
    world.settle_in()
    world.hold("a", T4_BYTES - GIB - 300 * MIB)

    assert [Act(3, "a")] == world.run(10)


def test_it_is_told_what_to_do() -> None:
    """Its Event names the annotation, and both ways out."""
    world = holding(unasked(EVICT), used=GIB)
    world.run(5)
    (said,) = [item.message for item in notices(world.decision, "n1")]

    assert names.UNDECLARED_USE in said
    assert "request an amount of GPU memory" in said
    assert "NVIDIA_VISIBLE_DEVICES=void" in said
