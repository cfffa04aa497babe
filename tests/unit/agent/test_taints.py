"""Which cards take no more claims, and for how long."""

from collections.abc import Mapping

import pytest

from agent.model.decision import CardFinding
from agent.model.taint import Disorder, TaintPolicy
from agent.taints import NO_ORDER, CardOrder, decided, orders
from tests.support.agent.builders import CARDS, card_sample, uses

UUID = CARDS[0].uuid
POLICY = TaintPolicy(enabled=True, taint_seconds=30.0, untaint_seconds=120.0)
NONE, NOBODYS, TWICE = Disorder.NONE, Disorder.UNATTRIBUTED, Disorder.OVERCOMMITTED
Days = list[tuple[float, str]]


def finding(shows: str) -> CardFinding:
    """Make what is found of a card: "order", "nobody's", "twice", "both" or "dark"."""
    held: dict[int, int | None] | None = None if shows == "dark" else {}
    card = uses([card_sample(0, held)], (), ()).cards[UUID]
    nobodys = 1 if shows in {"nobody's", "both"} else None
    return CardFinding(card, 0, shows in {"twice", "both"}, nobodys)


def after(*looks: tuple[float, str]) -> Disorder | None:
    """Look at a card at these seconds; return what is decided then."""
    found: Mapping[str, CardOrder] = NO_ORDER
    for now, shows in looks:
        found = orders(found, {UUID: finding(shows)}, POLICY, now)
    return decided(found).get(UUID)


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([(0, "order")], None),
        ([(0, "nobody's"), (29, "nobody's")], None),
        ([(0, "nobody's"), (30, "nobody's")], NOBODYS),
        ([(0, "twice"), (30, "twice")], TWICE),
        ([(0, "both"), (30, "both")], NOBODYS),
        ([(0, "twice"), (20, "order"), (25, "twice"), (50, "twice")], None),
        ([(0, "order"), (119, "order")], None),
        ([(0, "order"), (120, "order")], NONE),
    ],
)
def test_nothing_is_decided_before_it_has_lasted(looks: Days, expected: Disorder | None) -> None:
    """
    A disorder that goes by itself taints nothing, and an agent that starts leaves what it finds.
    """
    assert expected == after(*looks)


def test_a_card_has_to_be_in_order_for_longer_than_it_was_not() -> None:
    """One that goes back and forth stays tainted."""
    begun: Days = [(0, "twice"), (30, "twice"), (40, "order")]

    assert TWICE == after(*begun, (159, "order"))
    assert TWICE == after(*begun, (100, "twice"), (110, "order"), (160, "order"))
    assert NONE == after(*begun, (160, "order"))


def test_another_disorder_is_no_order() -> None:
    """The taint stays, and its reason follows."""
    begun: Days = [(0, "twice"), (30, "twice"), (40, "nobody's")]

    assert TWICE == after(*begun, (60, "nobody's"))
    assert NOBODYS == after(*begun, (70, "nobody's"))


def test_of_a_card_that_cannot_be_read_nothing_changes() -> None:
    """What it showed before counts anew from when it can be read again."""
    assert TWICE == after((0, "twice"), (30, "twice"), (40, "dark"), (500, "dark"))
    assert after((0, "twice"), (20, "dark"), (40, "twice")) is None
    assert TWICE == after((0, "twice"), (30, "twice"), (40, "order"), (100, "dark"), (200, "order"))
    assert after((0, "dark"), (500, "dark")) is None


def test_a_card_that_is_gone_is_forgotten() -> None:
    """Its device is published no more."""
    assert {} == orders({UUID: CardOrder(TWICE, 0.0, TWICE)}, {}, POLICY, 1.0)
