"""Limits that move, pods that asked for nothing, and the last look before an act."""

from dataclasses import replace
from typing import Any

import pytest

from agent.events.notices import notices
from agent.fence import PodContext
from agent.judge import objection, settle
from agent.model.decision import Action, ActResult, Answer, Outcome, Verdict
from agent.model.memory import Memory
from agent.model.pod import PodLimit, PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.use import Observation
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import (
    CARDS,
    card_sample,
    container_id,
    occupant,
    pod,
    process_of,
    uses,
)
from tests.support.agent.builders import pod as fenced
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.support.builders import pod as raw_pod
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY, robbed, settled, violating

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
    assert "request an amount" in said
    assert "NVIDIA_VISIBLE_DEVICES=void" in said
