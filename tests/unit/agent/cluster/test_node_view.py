"""What the numbers on a node's pods mean."""

import pytest

from agent.cluster.node_cards import differ, report_of
from gpufence import names
from gpufence.cards import NodeCards, write_cards
from gpufence.dialects import Units
from gpufence.nodes import read_node
from gpufence.quantity import GIB, MIB
from tests.support.builders import T4_BYTES, card, node, node_cards

SEEN = node_cards(card(0), card(1))
T4_MIB = T4_BYTES // MIB


def offering(said: NodeCards | None = None, /, **offered: str) -> dict[str, object]:
    resources = {
        "memory": names.GPUSHARE_MEMORY,
        "count": names.GPUSHARE_COUNT,
        "volcano": names.VOLCANO_MEMORY,
        "whole": names.NVIDIA_GPU,
    }
    return node(
        allocatable={resources[key]: text for key, text in offered.items()},
        annotations={} if said is None else {names.CARDS: write_cards(said)},
    )


@pytest.mark.parametrize(
    ("memory", "unit", "unit_bytes"),
    [
        ("30", "GiB", GIB),
        (str(2 * T4_MIB), "MiB", MIB),
        ("7", None, None),
    ],
)
def test_gpushare_unit(memory: str, unit: str | None, unit_bytes: int | None) -> None:
    """The unit is what the node offers over what its cards hold; what fits neither is no unit."""
    report = report_of(SEEN, offering(memory=memory, count="2"), Units())

    assert unit == dict(report.cards.units).get(names.GPUSHARE_MEMORY)
    assert unit_bytes == report.units.gpushare_bytes


def test_cards_are_counted_where_the_node_does_not() -> None:
    """A node that does not say how many cards share is taken for one that shares all of them."""
    report = report_of(SEEN, offering(memory="30"), Units(gpushare_bytes=MIB))

    assert GIB == report.units.gpushare_bytes
    assert SEEN.cards == report.cards.cards


def test_volcano_factor() -> None:
    """Volcano's factor follows from what the node offers."""
    report = report_of(SEEN, offering(volcano=str(2 * T4_MIB // 10)), Units())

    assert (10, 10) == (report.cards.factor, report.units.volcano_factor)


def test_the_operators_word() -> None:
    """Where the node has said nothing, ever, the operator's word counts."""
    word = Units(gpushare_bytes=MIB, volcano_factor=7, clients=3)

    assert word == report_of(SEEN, offering(whole="2"), word).units
    assert word == report_of(SEEN, offering(), word).units
    assert word == report_of(SEEN, {}, word).units


@pytest.mark.parametrize("offered", [{}, {"whole": "2"}, {"memory": "0"}, {"memory": "none"}])
def test_a_device_plugin_that_is_down(offered: dict[str, str]) -> None:
    """A unit that was found once holds while the node does not offer the resource."""
    said = node_cards(*SEEN.cards, units={names.GPUSHARE_MEMORY: "MiB"}, factor=10)
    report = report_of(SEEN, offering(said, **offered), Units())

    assert (said.units, 10) == (report.cards.units, report.cards.factor)
    assert (MIB, 10) == (report.units.gpushare_bytes, report.units.volcano_factor)


def test_other_cards() -> None:
    """What was said of other cards does not count."""
    said = node_cards(card(9), units={names.GPUSHARE_MEMORY: "MiB"}, factor=10)
    report = report_of(SEEN, offering(said), Units())

    assert ((), None) == (report.cards.units, report.cards.factor)
    assert Units() == report.units


def test_the_webhook_reads_the_same() -> None:
    """Whoever reads the annotation comes to the units that the agent works with."""
    report = report_of(SEEN, offering(memory=str(2 * T4_MIB), count="2"), Units())
    said = offering(report.cards, memory=str(2 * T4_MIB), count="2")
    read = read_node(said, Units())

    assert read is not None
    assert (report.units, report.cards.cards) == (read.units, read.cards)


def test_difference() -> None:
    """Only the time of the observation makes no difference."""
    later = NodeCards(SEEN.driver, "2027-01-02T03:04:05Z", SEEN.cards)

    assert not differ(SEEN, later)
    assert differ(None, SEEN)
    assert differ(SEEN, node_cards(card(0)))
