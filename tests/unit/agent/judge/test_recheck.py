"""Limits that move, pods that asked for nothing, and the last look before an act."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.events.notices import NOTHING_ANNOUNCED, new_notices
from agent.judge import objection, settle
from agent.model.decision import Action, ActResult, Answer, Outcome, Verdict
from agent.model.memory import Memory
from agent.model.pod import PodLimit, PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.use import Observation
from gpufence import names
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import (
    CARDS,
    card_sample,
    occupant,
    pod,
    process_of,
    read,
    status_of,
    uses,
)
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.support.builders import pod as raw_pod
from tests.unit.agent.judge.scenes import (
    OVER,
    SLIGHTLY,
    Scene,
    play,
    robbed,
    scenes,
    settled,
    violating,
)

UUID = CARDS[0].uuid
POLICY = EvictionPolicy()


def seen(item: PodOnNode, used: int | None = OVER, *, free: int = GIB, **more: Any) -> Observation:
    """Look at a pod and its neighbour twice, so that both are confirmed."""
    held = T4_BYTES - (used or 0) - free
    neighbour = pod("neighbour", limit=held)
    people = [process_of(item), process_of(neighbour, 2), occupant(3, None, None)]
    known = [item, neighbour]
    first = uses([card_sample(0, {1: used, 2: held}, at=-1)], people, known)
    now = {1: used, 2: held} | ({3: 0} if more else {})
    return uses([card_sample(0, now, free=free, **more)], people, known, first)


def verdict(*, short: bool = False, action: Action = Action.EVICT) -> Verdict:
    use = seen(pod()).cards[UUID].pods["uid-a"]
    return Verdict(pod(), Outcome.EVICT, use, by_shortage=short, action=action)


def against(use: Observation, *, now: float = 0.5, **more: Any) -> str:
    return objection(verdict(**more), use, POLICY, now)


@pytest.mark.parametrize(
    ("changed", "action", "expected"),
    [
        ({}, Action.EVICT, ""),
        ({"mode": Mode.CAP}, Action.EVICT, "its mode is not evict any more"),
        ({"exempt": "it is a mirror pod"}, Action.EVICT, "it is exempt now"),
        ({"enforced": False}, Action.EVICT, "it is exempt now"),
        ({"terminating": True}, Action.EVICT, "it is terminating by itself"),
        ({"limits": {}}, Action.EVICT, "it holds nothing on the card that counts"),
        ({"uid": "uid-next"}, Action.EVICT, "the pod is gone"),
        ({"terminating": True}, Action.KILL, ""),
        ({}, Action.KILL, "it is not terminating"),
    ],
)
def test_pod_that_has_changed(changed: dict[str, Any], action: Action, expected: str) -> None:
    """A pod that is not what it was stays; only one that is still terminating is killed."""
    assert expected == against(seen(pod(**changed)), action=action)


@pytest.mark.parametrize(
    ("used", "free", "short", "expected"),
    [
        (OVER, GIB, False, ""),
        (GIB, GIB, False, "it is not over its limit any more"),
        (SLIGHTLY, GIB, False, "it is not over its limit any more"),
        (None, GIB, False, "it is not over its limit any more"),
        (SLIGHTLY, 450 * MIB, True, ""),
        (OVER, GIB, True, "its eviction does not end a shortage any more"),
        (GIB, 0, True, "its eviction does not end a shortage any more"),
        (None, 0, True, "its eviction does not end a shortage any more"),
    ],
)
def test_use_that_has_changed(
    used: int | None,
    free: int,
    short: bool,  # noqa: FBT001 - a column
    expected: str,
) -> None:
    """A pod stays whose use, or its card's shortage, is not what made it due."""
    assert expected == against(seen(pod(), used, free=free), short=short)


@pytest.mark.parametrize(("free", "goes"), [(212 * MIB, True), (211 * MIB, False)])
def test_shortage_that_the_pod_would_not_cure(free: int, goes: bool) -> None:  # noqa: FBT001 - a column
    """A pod that the webhook never saw stays if it would not end the shortage any more."""
    expected = "" if goes else "its eviction does not end a shortage any more"

    assert expected == against(seen(pod(injected=False), free=free), short=True)


def test_card_that_cannot_be_read() -> None:
    """Without a recent list of the card, and as a client of the node's MPS server, nobody goes."""
    gap = uses([card_sample(0, None)], [], [pod()], seen(pod()))

    assert "the card cannot be read" == against(gap)
    assert "the card cannot be read" == against(seen(pod()), now=3.5)
    assert "the card cannot be read" == against(uses([], [], [pod()]))
    assert "it holds nothing on the card that counts" == against(seen(pod(), mps={1, 3}))


def test_api_server_out_of_reach() -> None:
    """Nobody goes by what was true a while ago."""
    stale = replace(seen(pod()), pods=pods_on_node([pod()], fresh=False))

    assert "the API server is out of reach" == against(stale)


@pytest.mark.parametrize("answer", [Answer.CANCELLED, Answer.FAILED])
def test_answers_that_leave_no_trace(answer: Answer) -> None:
    """An act that was called off is not remembered, nor a refusal for a pod that is forgotten."""
    memory = Memory(0.0)

    assert memory == settle(memory, verdict(), ActResult(answer), POLICY, 1.0)


CLAIM = 6 * GIB


def limits(limit: int | None) -> dict[str, PodLimit]:
    return {} if limit is None else {item.uuid: PodLimit(limit) for item in CARDS}


def claimed() -> dict[str, PodLimit]:
    """Build what every pod of one claim has of it."""
    return {item.uuid: PodLimit(CLAIM, claims=(("claim/r", CLAIM),)) for item in CARDS}


def moving(world: World, to: Callable[[int], int | None]) -> World:
    """Give pod `a` another limit before each look."""
    return world.each(lambda world, second: world.change("a", limits=limits(to(second))))


def sharing(thief: int, partner: int) -> World:
    """Make a node on which two pods use one claim."""
    world = settled(pod("a", limits=claimed()), pod("partner", limits=claimed()))
    return world.hold("a", thief).hold("partner", partner)


@scenes(
    Scene(
        "1 MiB less in each look gives no time back",
        moving(violating(used=12 * GIB), lambda second: 3 * GIB - second * MIB),
        [Act(9, "a")],
        until=10,
    ),
    Scene(
        "nor on a card that is short",
        moving(robbed(), lambda second: 3 * GIB - second * MIB),
        [Act(9, "a")],
        until=10,
    ),
    Scene(
        "up and down below what is held",
        moving(violating(used=5 * GIB), lambda second: (3 if second % 2 else 4) * GIB),
        [Act(30, "a")],
        until=100,
    ),
    Scene(
        "about what is held: seconds below count, the others take half as much back",
        moving(violating(used=5 * GIB), lambda second: (3 if second % 10 < 9 else 8) * GIB),
        [Act(35, "a")],
        until=100,
    ),
    Scene(
        "unknown for a second: nine of each ten seconds begin with a limit",
        moving(violating(), lambda second: 3 * GIB if second % 10 else None),
        [Act(34, "a")],
        until=100,
    ),
    Scene(
        "unknown from second 29 on",
        violating().at(29, "change", "a", limits={}),
        (),
        Outcome.UNDECLARED,
        until=100,
    ),
    Scene(
        "a partner that grows gives a pod over its claim nothing",
        sharing(8 * GIB, GIB).each(lambda world, second: world.hold("partner", GIB + second * MIB)),
        [Act(25, "a")],
        until=26,
    ),
    Scene(
        "nor does one that leaves the claim in every other look",
        sharing(9 * GIB, GIB).each(
            lambda world, second: world.change(
                "partner", limits=claimed() if second % 2 else limits(3 * GIB)
            )
        ),
        [Act(22, "a")],
        until=23,
    ),
    Scene(
        "a partner within its equal part stays",
        sharing(8 * GIB, 3 * GIB),
        [Act(15, "a")],
        until=100,
    ),
)
def test_limits_that_move(scene: Scene) -> None:
    """Time over the limit that applied at that time is kept, and no other is counted."""
    play(scene)


def test_a_pod_without_a_limit_that_lets_go_is_forgotten() -> None:
    """A pod that holds nothing any more and has no limit is held against nothing."""
    world = violating().at(20, "change", "a", limits={}).at(21, "set", holds={})
    world.run(80)

    assert {} == world.memory.pods["uid-a"].watches


EVICT = {names.UNDECLARED_USE: "evict"}
CEILING = {**EVICT, names.MAX_MEMORY: "2Gi"}


def unasked(
    words: dict[str, str], name: str = "a", namespace: str = "team-a", mode: str = "evict"
) -> PodOnNode:
    """Read a pod that asks for nothing, which no webhook is called for."""
    raw: dict[str, Any] = raw_pod()
    raw["metadata"] |= {"name": name, "uid": f"uid-{name}", "namespace": namespace}
    return read(raw | {"status": status_of(name)}, labels={names.MODE: mode}, annotations=words)


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
    play(Scene("", holding(unasked(EVICT, mode="cap"), used=GIB), (), Outcome.WOULD_EVICT, 40))


def test_many_of_them_look_like_no_wrong_unit() -> None:
    """Where they may hold nothing all that hold something are over, and nothing is suspended."""
    pods = [unasked(EVICT, f"p{number}", f"n{number}") for number in range(4)]

    assert 4 == len(holding(*pods, used=GIB).run(40))


def test_they_are_promised_nothing_and_end_a_shortage() -> None:
    """What they may hold at most makes no card short; they go for a shortage like others."""
    quiet = World(cards=1).add(unasked(CEILING), 100 * MIB).add(pod("b", limit=13 * GIB), 13 * GIB)
    quiet.run(1)
    short = World(cards=1).add(unasked(EVICT), 0).add(pod("b", limit=10 * GIB), GIB).settle_in()

    assert 0 == quiet.decision.findings[UUID].owed_bytes
    assert [Act(3, "a")] == short.hold("a", T4_BYTES - GIB - 300 * MIB).run(10)


def test_it_is_told_what_to_do() -> None:
    """Its Event names the annotation, and both ways out."""
    world = holding(unasked(EVICT), used=GIB)
    world.run(5)
    (said,) = [item.message for item in new_notices(NOTHING_ANNOUNCED, world.decision, "n1")[1]]

    assert names.UNDECLARED_USE in said
    assert "request an amount" in said
    assert "NVIDIA_VISIBLE_DEVICES=void" in said
