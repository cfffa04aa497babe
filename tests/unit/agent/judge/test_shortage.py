"""
Promises on a card: when it is short, who goes for that, and what stands behind it where nobody
does.
"""

from typing import Any

import pytest

from agent.model.decision import Answer, Outcome, Shortage
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.unit.agent.judge.scenes import (
    OVER,
    SHORT_ONLY,
    SLIGHTLY,
    THEFT,
    robbed,
    settled,
)

UUID = CARDS[0].uuid


def shortage(world: World) -> Shortage:
    world.run(world.now + 1)
    found = world.decision.findings[UUID].shortage
    assert found is not None
    return found


def test_a_budget_does_not_shield_theft_while_a_little_is_free() -> None:
    """
    A pod that takes what a neighbour was promised is deleted after three refusals, though there is
    more free than a context needs.
    """
    world = robbed()
    world.answer = Answer.BLOCKED

    assert [Act(9, "a"), Act(14, "a"), Act(24, "a"), Act(25, "a", "delete")] == world.run(26)


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(robbed(injected=False), id="a pod that no webhook saw"),
        pytest.param(robbed(policy=SHORT_ONLY), id="evicting on short cards only"),
    ],
)
def test_theft_of_a_promise_is_a_shortage(world: World) -> None:
    """
    Who takes what a neighbour was promised goes, though the neighbour has not asked for it yet.
    """
    assert [Act(9, "a")] == world.run(60)


def test_a_pod_that_has_not_begun_is_promised_its_memory() -> None:
    """A pod bound to a card where it holds nothing yet is owed its whole limit."""
    late = pod("late", limit=3 * GIB, assigned=frozenset({UUID}))
    world = settled(pod("a"), policy=SHORT_ONLY)
    world.pods["late"] = late
    world.hold("a", 13 * GIB)

    assert [Act(8, "a")] == world.run(60)


@pytest.mark.parametrize(
    "change",
    [{"terminating": True}, {"ended": True}, {"enforced": False}, {"mode": None}],
    ids=["terminating", "ended", "not-enforced", "unlabelled"],
)
def test_who_is_promised_nothing(change: dict[str, Any]) -> None:
    """A pod on its way out, or without a fence, is owed nothing beside what it holds."""
    world = robbed(policy=SHORT_ONLY)
    world.change("b", **change)

    assert [] == world.run(60)


def test_promises_beyond_the_card_are_cut() -> None:
    """
    Where limits add up to more than the card, what is owed is at most what is left of it beside
    what is held within limits.
    """
    world = settled(pod("a", limit=10 * GIB), pod("b", limit=10 * GIB), used=6 * GIB)
    world.run(1)

    assert T4_BYTES - 12 * GIB == world.decision.findings[UUID].owed_bytes


def test_reserved_memory_cannot_be_promised() -> None:
    """What is held within limits on an overcommitted card is no shortage of anybody's making."""
    world = settled(pod("a", limit=10 * GIB), pod("b", limit=10 * GIB), used=7 * GIB)

    assert [] == world.run(60)
    assert {} == world.memory.short


def test_unknown_use_is_taken_for_the_promise() -> None:
    """A neighbour whose use cannot be read is owed nothing more."""
    world = robbed(policy=SHORT_ONLY)
    world.hold("b", None)

    assert [] == world.run(60)


def test_a_tolerated_pod_stays_on_a_card_that_is_promised_to_the_last_byte() -> None:
    """A pod within the margin for evictions hurts nobody by what it takes of a promise."""
    world = settled(pod("a"), pod("b", limit=T4_BYTES - LIMIT))
    world.hold("a", LIMIT + 200 * MIB)

    assert [] == world.run(400)
    assert Outcome.TOLERATED is world.outcome("a")


def test_a_short_peak_is_tolerated_though_it_takes_of_a_promise() -> None:
    """Twice the limit for twenty seconds while a model loads evicts nobody."""
    world = settled(pod("a"), pod("b", limit=T4_BYTES - LIMIT))
    world.hold("a", 2 * LIMIT)
    world.at(20, world.hold, "a", LIMIT)

    assert [] == world.run(400)


def test_a_tolerated_pod_pays_for_no_stranger() -> None:
    """
    A pod slightly over its limit, in its grace, stays when a pod without a fence fills the card.
    """
    world = World()
    world.add(pod("a"), SLIGHTLY)
    world.add(pod("b"), GIB)
    world.add(pod("other", namespace="free", mode=None), 0)
    world.at(10, world.hold, "other", T4_BYTES - SLIGHTLY - GIB)

    assert [] == world.run(60)
    assert "other" == _name_of_cause(world)


def _name_of_cause(world: World) -> str:
    cause = shortage(world).cause
    assert cause is not None
    return "" if cause.pod is None else cause.pod.name


@pytest.mark.parametrize("excess", [300 * MIB, 4 * GIB])
def test_who_does_not_cure_a_shortage_goes_by_the_ordinary_rules(excess: int) -> None:
    """An offender in its grace whose excess is a small part of what is missing keeps its grace."""
    world = World()
    world.add(pod("a", limit=GIB), GIB + excess)
    world.add(pod("b", limit=14 * GIB), 0)
    world.add(pod("other", namespace="free", mode=None), T4_BYTES - GIB - excess)
    world.hold("b", MIB)

    assert [] == world.run(100)


def test_a_client_of_the_nodes_mps_server_ends_no_shortage() -> None:
    """What a pod holds through the node's MPS server is not held against it on a short card."""
    world = World(mps={0})
    world.add(pod("a"), THEFT)
    world.add(pod("b", limit=T4_BYTES - LIMIT), MIB)

    assert [] == world.run(60)
    assert Outcome.MPS is world.outcome("a")


def test_a_little_that_no_fence_counts_shields_nobody() -> None:
    """An offender who took more than half of what is missing goes, whoever has the rest."""
    world = World()
    world.add(pod("a"), THEFT)
    world.add(pod("b", limit=T4_BYTES - LIMIT), MIB)
    world.strangers[9] = (0, 2 * GIB)

    assert [Act(9, "a")] == world.run(60)


def test_the_largest_excess_ends_a_shortage_alone() -> None:
    """Of two offenders on a short card only the one goes whose excess ends the shortage."""
    world = settled(pod("a"), pod("c"), pod("b", limit=8 * GIB), policy=SHORT_ONLY)
    world.hold("a", 9 * GIB)
    world.hold("c", LIMIT + 400 * MIB)
    world.hold("b", GIB)
    world.at(60, world.hold, "b", 8 * GIB)

    assert [Act(13, "a")] == world.run(200)


def test_as_many_go_as_it_takes() -> None:
    """Where one is not enough the next one goes, too, without waiting for the first."""
    small = [pod(name, limit=GIB) for name in "ac"]
    world = settled(*small, pod("b", limit=13 * GIB), used=MIB, policy=SHORT_ONLY)
    world.hold("a", 6 * GIB)
    world.hold("c", 5 * GIB)

    assert [Act(15, "a"), Act(19, "c")] == world.run(60)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("capped", {"mode": Mode.CAP}),
        ("exempt", {"exempt": "it is a static pod"}),
        ("implied", {"enforced": False}),
        ("unlimited", {"limits": {}}),
    ],
)
def test_who_is_behind_a_shortage_is_named(name: str, change: dict[str, Any]) -> None:
    """After half a minute the finding names who holds what was promised and is not to go for it."""
    world = settled(pod("a"), pod("b", limit=9 * GIB), pod(name, **change))
    world.hold(name, 13 * GIB)
    world.run(40)

    assert name == _name_of_cause(world)


def test_what_drivers_hide_everywhere_is_not_worth_a_word() -> None:
    """
    A card that is promised to the last byte lacks what its driver holds, and nobody is blamed.
    """
    world = settled(pod("a", limit=T4_BYTES // 2), pod("b", limit=T4_BYTES // 2))
    free = T4_BYTES - 2 * GIB - 200 * MIB
    world.free[0] = free
    world.run(100)

    assert free < world.decision.findings[UUID].owed_bytes
    assert world.decision.findings[UUID].shortage is None


def test_hidden_memory_is_named_as_such() -> None:
    """Memory that no process shows stands behind a shortage that nothing else explains."""
    world = settled(pod("a"), pod("b"))
    world.free[0] = GIB
    world.run(40)
    cause = shortage(world).cause

    assert cause is not None
    assert (None, True) == (cause.pod, cause.hidden)


@pytest.mark.parametrize(
    ("used", "expected"),
    [(OVER, 30), (LIMIT + 2560 * MIB, 30), (LIMIT + 5 * GIB, 15), (LIMIT + 9 * GIB, 9)],
)
def test_who_takes_more_has_less_time(used: int, expected: int) -> None:
    """The hold is shorter in proportion to what is held above the limit, from 2.5 GiB on."""
    world = settled()
    world.hold("a", used)

    assert [Act(expected, "a")] == world.run(60)


@pytest.mark.parametrize("seconds", [6, 7, 8, 9, 15, 29])
def test_no_sawtooth_of_a_large_theft_lasts(seconds: int) -> None:
    """
    12 GiB of 3 for some seconds, and nothing for twice as long and more, ends within a minute.
    """
    world = settled()

    def script(second: int) -> None:
        world.hold("a", THEFT if second % 30 < seconds else GIB)

    world.run(3600, script)

    assert world.acts
    assert world.acts[0].second < 120


def test_a_promise_counts_once() -> None:
    """A pod that was given the card where it holds memory is owed the rest of its limit."""
    world = settled(pod("b", assigned=frozenset({UUID})))
    world.run(1)

    assert LIMIT - GIB == world.decision.findings[UUID].owed_bytes
