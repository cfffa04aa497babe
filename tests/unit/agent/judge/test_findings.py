"""What is said of cards and containers, which lists are wanted next, and who pulls the brakes."""

import math
from dataclasses import replace

import pytest

from agent.judge.reason import refused
from agent.model.decision import ContainerExcess, Ineffective, Outcome, Verdict
from agent.model.memory import NO_REFUSALS, Refusals
from agent.model.pod import Cap, PodLimit
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, on_card, pod
from tests.support.agent.world import World
from tests.support.builders import T4_BYTES
from tests.unit.agent.judge.scenes import (
    SLIGHTLY,
    WITHIN,
    full,
    settled,
    started,
    violating,
)

UUID = CARDS[0].uuid


def only(world: World) -> Verdict:
    (found,) = world.decision.verdicts
    return found


def test_suspects_are_listed_in_each_look() -> None:
    """
    The card of a pod over its limit, until its time has drained, and a card without a list; a quiet
    node needs none.
    """
    quiet, unlisted, world = settled(), settled().set(unlisted={1}), violating(used=SLIGHTLY)
    world.at(4, "hold", "a", WITHIN)
    seen = []
    for node, second in ((quiet, 3), (unlisted, 1), (world, 4), (world, 6), (world, 13)):
        node.run(second)
        seen.append(set(node.decision.suspects))

    assert [set(), {CARDS[1].uuid}, {UUID}, {UUID}, set()] == seen


FOUND = {
    "limits beyond the card, one counted as no more": (
        settled(pod("a", limit=8 * GIB), pod("b", limit=90 * GIB)),
        {"committed_bytes": 8 * GIB + T4_BYTES, "overcommitted": True},
    ),
    "a size from the card's description": (
        settled(pod("a", limit=90 * GIB)).set(free={0: None}),
        {"committed_bytes": T4_BYTES, "overcommitted": False},
    ),
    "promises beyond the card are cut": (
        settled(pod("a", limit=10 * GIB), pod("b", limit=10 * GIB), used=6 * GIB),
        {"owed_bytes": T4_BYTES - 12 * GIB},
    ),
    "what is held within limits is no shortage": (
        settled(pod("a", limit=10 * GIB), pod("b", limit=10 * GIB), used=7 * GIB),
        {"shortage": None},
    ),
    "a promise counts once": (
        settled(pod("b", assigned=frozenset({UUID}))),
        {"owed_bytes": LIMIT - GIB},
    ),
    "what drivers hide everywhere": (
        settled(pod("a", limit=T4_BYTES // 2), pod("b", limit=T4_BYTES // 2)).set(
            free={0: T4_BYTES - 2 * GIB - 200 * MIB}
        ),
        {"owed_bytes": T4_BYTES - 2 * GIB, "shortage": None},
    ),
    "memory of no pod": (
        settled().set(strangers={9: (0, 13 * GIB)}),
        {"unattributed_bytes": 13 * GIB},
    ),
    "memory of no pod, too soon": (
        settled().set(strangers={9: (0, 13 * GIB)}, now=70),
        {"unattributed_bytes": None},
    ),
}


@pytest.mark.parametrize(("world", "expected"), FOUND.values(), ids=FOUND)
def test_what_is_found_of_a_card(world: World, expected: dict[str, object]) -> None:
    """A card is said to be what it is, after as long as that takes, and no pod pays for it."""
    assert [] == world.run(100)
    found = world.decision.findings[UUID]

    assert expected == {name: getattr(found, name) for name in expected}
    assert {} == world.memory.short or found.owed_bytes


@pytest.mark.parametrize(
    ("kept", "limit", "allowed"), [(True, LIMIT, GIB + 512 * MIB), (False, 4 * GIB, 4 * GIB)]
)
def test_process_above_its_cap(limit: int, allowed: int, *, kept: bool) -> None:
    """
    A process above its cap, its context and the slack is named, one at the slack is not; where
    nothing is known that reads its variables, above the limit alone.
    """
    cap = Cap(GIB, 512 * MIB, kept=kept)
    world = settled(pod("a", "main", "aside", caps={"main": cap}, limit=limit))
    world.hold("a", allowed + 256 * MIB).hold("a", 0, container="aside").run(2)
    at_most = only(world).ineffective
    world.hold("a", allowed + 257 * MIB).run(3)
    pid, told = world.pids["a", "main"], cap.cap_bytes + cap.reserve_bytes

    assert () == at_most
    assert (Ineffective("main", pid, allowed + 257 * MIB, told),) == only(world).ineffective


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


def test_when_a_pod_is_due() -> None:
    """After grace and hold in its grace, within seconds on a short card, and after a refusal."""
    grace, short, refused_once = started(), full(), violating()
    grace.run(21)
    short.run(2)
    refused_once.run(30)
    known = refused_once.memory.pods["uid-a"]
    refused_once.remember(pods={"uid-a": replace(known, refusals=Refusals(1, 0, 33.0))}).run(32)

    assert [
        (Outcome.GRACE, 130.0, False),
        (Outcome.HOLDING, 2.0, True),
        (Outcome.BACKING_OFF, 2.0, False),
    ] == [
        (found.outcome, found.due_seconds, found.by_shortage)
        for found in (world.decision.verdicts[0] for world in (grace, short, refused_once))
    ]
    assert [120.0, 3.0, 33.0] == [world.decision.deadline for world in (grace, short, refused_once)]


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
