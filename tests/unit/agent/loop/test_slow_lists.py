"""A driver that takes long to list processes: time over a limit counts all the same."""

import pytest

from agent.model.policy import EvictionPolicy
from gpufence import names
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.node import Node, running

POLICY = EvictionPolicy(start_pause_seconds=0.0, grace_seconds=0.0)
OVER = LIMIT + GIB


def slow(node: Node, seconds: dict[int, float]) -> Node:
    """Put a violator on the last of the slow cards, and an innocent on every card."""
    node.cards.list_seconds = seconds
    node.cards.held = {index: {} for index in range(len(CARDS))}
    for index in node.cards.held:
        node.add(pod(f"good-{index}"), GIB, 10 + index, index)
    node.add(pod("greedy"), OVER, 1, max(seconds))
    return node


def seconds_until_acted(node: Node, most: float) -> float:
    """Look again and again, each time a second after the last look ended."""
    began = node.clock.now
    while not node.api.acts and node.clock.now - began < most:
        node.tick()
    return node.clock.now - began


EACH = [
    pytest.param(dict.fromkeys(range(8), 0.45), id="0.45 s on each of eight cards"),
    pytest.param({0: 2.0}, id="2 s on one card"),
    pytest.param({7: 4.9}, id="all of a look on one card"),
    pytest.param(dict.fromkeys(range(8), 0.9), id="more than one look in all"),
    pytest.param(dict.fromkeys(range(8), 2.4), id="four looks in all"),
]


@pytest.mark.parametrize("seconds", EACH)
def test_slow_lists_put_an_eviction_off_and_no_more(seconds: dict[int, float]) -> None:
    """A violator is evicted within the hold and three rounds of all lists; the innocent stay."""
    with running(POLICY) as node:
        looks = 1 + sum(seconds.values()) // 5
        took = seconds_until_acted(slow(node, seconds), 200.0)

    assert ["greedy"] == [item.pod.name for item in node.api.acts]
    assert took <= POLICY.hold_seconds + 3 * (sum(seconds.values()) + looks)


def test_a_loop_that_was_stopped_has_seen_nothing() -> None:
    """A pause in which nobody looked does not count, however long the look before it took."""
    with running(POLICY) as node:
        slow(node, dict.fromkeys(range(8), 0.45)).tick(5)
        node.tick(seconds=60.0)
        node.tick(2)

    assert [] == node.api.acts


def test_a_look_that_was_interrupted_has_seen_little() -> None:
    """Nor does one look count that took a minute, as that of a program that was stopped."""
    with running(POLICY) as node:
        slow(node, {0: 0.0}).tick(5)
        node.cards.slow_seconds = 60.0
        node.tick()
        node.cards.slow_seconds = 0.0
        node.tick(2)

    assert [] == node.api.acts


@pytest.mark.parametrize(("seconds", "said"), [(4.5, False), (12.0, True)])
def test_a_card_that_cannot_be_judged_says_so(seconds: float, *, said: bool) -> None:
    """A card whose suspects could not be judged for ten seconds has an Event and a figure."""
    with running(POLICY) as node:
        slow(node, {0: 0.0}).tick(3)
        listed = dict(node.cards.lists)
        while node.clock.now - (listed[0].listed_at if listed[0] else 0.0) < seconds:
            node.cards.lists = dict(listed)
            node.cards.list_seconds = {0: 9.0}
            node.tick()
        state = node.loop.state

    assert state.last is not None
    found = state.last.decision.findings[CARDS[0].uuid]
    assert said is found.unjudged
    assert said is (names.NVML_UNAVAILABLE in node.api.reasons)
    assert 0.0 == state.last.decision.findings[CARDS[1].uuid].unjudged_seconds
