"""The cards of nodes that only labels describe."""

import pytest

from gpufence import names
from gpufence.candidates import CandidateCard, candidate_cards
from gpufence.card_labels import LARGEST_MADE, SOLD, cards_by_labels, shown_memory
from gpufence.cards import Card
from gpufence.dialects import Units
from gpufence.nodes import read_node
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from tests.support.births import CARDS, Sold, labels_of
from tests.support.builders import gpushare, node, pod


@pytest.mark.parametrize("kind", ["karpenter", "karpenter, memory alone", "eks"])
@pytest.mark.parametrize("sold", CARDS, ids=lambda sold: f"{sold.product} {sold.shown}")
def test_what_a_driver_shows_is_within_what_aws_says(sold: Sold, kind: str) -> None:
    """Whichever way a cloud counts memory, the driver's figure is between least and most."""
    (found,) = cards_by_labels(labels_of(kind, sold))

    assert found.memory_bytes <= sold.shown * MIB <= (found.most_bytes or 0)


@pytest.mark.parametrize("kind", ["gke", "product"])
@pytest.mark.parametrize(
    "sold",
    [each for each in CARDS if each.shown > 4096],
    ids=lambda sold: f"{sold.product} {sold.shown}",
)
def test_what_a_driver_shows_is_within_what_a_name_says(sold: Sold, kind: str) -> None:
    """A card that is known by its name alone has between least and most what drivers show."""
    (found,) = cards_by_labels(labels_of(kind, sold))

    assert found.memory_bytes <= sold.shown * MIB <= (found.most_bytes or 0)


@pytest.mark.parametrize(
    ("labels", "most"),
    [
        ({names.GKE_ACCELERATOR: "nvidia-a100-80gb", names.GKE_PARTITION: "1g.10gb"}, 10),
        ({names.GFD_PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb"}, 20),
        ({names.GFD_PRODUCT: "NVIDIA-GH200-480GB"}, 144),
        ({names.GFD_PRODUCT: "Quadro-RTX-6000"}, 48),
        ({names.GFD_PRODUCT: "NVIDIA-H100-NVL"}, 96),
        ({names.GFD_PRODUCT: "NVIDIA-Newest-512GB"}, 512),
        ({names.EKS_ACCELERATOR: "nvidia-tesla-v100"}, 32),
        ({names.KARPENTER_GPU_NAME: "t4"}, 16),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else f"{value} GB",
)
def test_the_most_a_name_stands_for(labels: dict[str, str], most: int) -> None:
    """A slice is what its profile says, and a name of several cards is the largest of them."""
    (found,) = cards_by_labels(labels)

    assert most * GIB == found.most_bytes


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {names.GFD_PRODUCT: "NVIDIA-GB10"},
        {names.GKE_ACCELERATOR: "tpu-v5-lite"},
        {names.KARPENTER_GPU_MEMORY: "0"},
        {names.KARPENTER_GPU_MEMORY: "lots"},
        {names.KARPENTER_GPU_MEMORY: "99999999999"},
        {names.GFD_PRODUCT: "NVIDIA-Newest-9999GB"},
    ],
    ids=["none", "one memory for all", "no GPU", "zero", "no number", "too much", "no card"],
)
def test_what_says_nothing_makes_no_card(labels: dict[str, str]) -> None:
    """A label that cannot be read, or names what is not known, tells no size."""
    assert () == cards_by_labels(labels)


def test_what_was_measured_counts_before_what_is_sold() -> None:
    """Feature discovery's figure is the driver's own."""
    labels = labels_of("karpenter", CARDS[0]) | labels_of("measured", CARDS[0])

    assert (Card("0", 0, "Tesla-T4", 15360 * MIB),) == cards_by_labels(labels)


def test_labels_that_contradict_each_other_leave_both_open() -> None:
    """Of a part of a card, which clouds rent out too, the name is that of the whole card."""
    labels = {names.KARPENTER_GPU_MEMORY: "2861", names.KARPENTER_GPU_NAME: "l4"}
    (found,) = cards_by_labels(labels)

    assert (2861 * MIB * 9 // 10, 24 * GIB) == (found.memory_bytes, found.most_bytes)


def test_every_card_of_a_node_is_there() -> None:
    """As many cards as the cloud says, all alike."""
    labels = labels_of("eks", CARDS[0]) | {names.EKS_GPU_COUNT: "4"}

    assert [0, 1, 2, 3] == [card.index for card in cards_by_labels(labels)]
    assert {"t4"} == {card.model for card in cards_by_labels(labels)}


def test_a_card_of_which_bounds_are_known_is_met_at_both_ends() -> None:
    """What is told must hold on the smallest and on the largest that it may be."""
    found = read_node(node(labels=labels_of("gke", CARDS[0])), Units())
    assert found is not None
    sizes = [
        each.memory_bytes
        for each in candidate_cards(
            read_pod(pod(gpushare())), [found], CandidateCard(Units(), None)
        )
    ]

    assert [16 * GIB * 9 // 10, 16 * GIB] == sizes
    assert "14745Mi to 16384Mi" == shown_memory(found.cards[0])


def test_bounds_tell_no_unit() -> None:
    """A node's figures are compared with measured cards only: a guess is off by a thousand."""
    labels = labels_of("karpenter", CARDS[11])
    found = read_node(node(labels=labels, allocatable={names.GPUSHARE_MEMORY: "79"}), Units())
    assert found is not None

    assert GIB == found.units.gpushare_bytes


def test_no_card_in_the_table_is_larger_than_the_largest() -> None:
    """A card that nothing tells counts as the largest there is."""
    assert max(most for _, most in SOLD.values()) * GIB == LARGEST_MADE
