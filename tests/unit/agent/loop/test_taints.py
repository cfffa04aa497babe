"""The part of a tick that has cards take no more claims."""

from agent.model.taint import Disorder, TaintPolicy
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.node import QUICK, running

UUID = CARDS[0].uuid
AT_ONCE = TaintPolicy(enabled=True, taint_seconds=2.0, untaint_seconds=3.0)


def test_a_card_whose_limits_are_more_than_it_has_is_tainted_until_they_are_not() -> None:
    """Each is asked for once."""
    with running(QUICK, AT_ONCE) as node:
        for place, name in enumerate(("a", "b"), start=1):
            node.add(pod(name, limit=10 * GIB), GIB, pid=place)
        node.tick(5)
        node.cards.held[0].pop(2)
        node.tick(5)

    assert [{UUID: Disorder.OVERCOMMITTED}, {UUID: Disorder.NONE}] == node.api.tainted


def test_nothing_is_tainted_that_nobody_asked_for() -> None:
    """Without the setting a card in disorder is only spoken of."""
    with running() as node:
        for place, name in enumerate(("a", "b"), start=1):
            node.add(pod(name, limit=10 * GIB), GIB, pid=place)
        node.tick(5)

    assert [] == node.api.tainted
