"""What a node says about its cards and units."""

from typing import Any

import pytest

from gpufence import names
from gpufence.cards import Card, Instance, write_cards
from gpufence.dialects import Units, gpushare, volcano
from gpufence.errors import InvalidError
from gpufence.nodes import GpuNode, read_node, stated_cards
from gpufence.quantity import GIB, MIB
from tests.support.builders import A100_BYTES, T4_BYTES, card, node, node_cards

GFD = {
    "nvidia.com/gpu.memory": "15360",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.product": "Tesla-T4-SHARED",
    "nvidia.com/gpu.compute.major": "7",
    "nvidia.com/gpu.compute.minor": "5",
}
SLICE = "nvidia.com/mig-1g.5gb"


def read(raw: dict[str, Any], defaults: Units | None = None) -> GpuNode:
    found = read_node(raw, defaults or Units())
    assert found is not None
    return found


def test_a_node_without_gpu_resource_is_none_of_ours() -> None:
    """A node that offers no GPU, or zero of it, or nobody knows how many, is left out."""
    offers = [{}, {"cpu": "8"}, {"nvidia.com/gpu": "0"}, {"nvidia.com/gpu": "some"}]

    assert [None] * 4 == [read_node(node(allocatable=offer), Units()) for offer in offers]


def test_the_agents_cards_come_first() -> None:
    """What an agent measured is preferred to what labels say."""
    found = read(node(card(memory_bytes=A100_BYTES), labels=GFD))

    assert ("node-1", (card(memory_bytes=A100_BYTES),), GFD) == (
        found.name,
        found.cards,
        found.labels,
    )
    assert {"aliyun.com/gpu-mem"} == found.resources


@pytest.mark.parametrize("said", ["{", '{"v":2}', '{"v":1,"cards":[{}]}', '{"v":1,"cards":[]}'])
def test_labels_stand_in_where_no_agent_can_be_read(said: str) -> None:
    """A broken, newer or empty annotation is no reason to know nothing."""
    found = read(node(labels=GFD, annotations={names.CARDS: said}))

    assert (
        Card("0", 0, "Tesla-T4", T4_BYTES, (7, 5)),
        Card("1", 1, "Tesla-T4", T4_BYTES, (7, 5)),
    ) == found.cards


@pytest.mark.parametrize(
    ("labels", "cards"),
    [
        ({}, ()),
        ({"nvidia.com/gpu.memory": "0"}, ()),
        ({"nvidia.com/gpu.memory": "16 GB"}, ()),
        ({"nvidia.com/gpu.memory": "1024"}, (Card("0", 0, "", GIB),)),
        (
            {"nvidia.com/gpu.memory": "1024", "nvidia.com/gpu.compute.major": "8"},
            (Card("0", 0, "", GIB),),
        ),
        (
            {f"{SLICE}.memory": "4864", f"{SLICE}.count": "7"},
            (Card(f"{SLICE}.memory", 0, "", 4864 * MIB, None, Instance("", "1g.5gb")),),
        ),
        ({f"{SLICE}.memory": "unknown"}, ()),
    ],
    ids=["none", "zero", "no number", "memory only", "half a capability", "slice", "unknown slice"],
)
def test_labels_say_what_they_say_and_no_more(
    labels: dict[str, str], cards: tuple[Card, ...]
) -> None:
    """A label that cannot be read is a label that is not there."""
    assert cards == read(node(labels=labels)).cards


def test_no_label_makes_a_million_cards() -> None:
    """A mistaken count costs no memory."""
    labels = {"nvidia.com/gpu.memory": "1024", "nvidia.com/gpu.count": "1000000"}

    assert 64 == len(read(node(labels=labels)).cards)


def test_what_is_no_node_is_refused() -> None:
    """A Node of the wrong shape raises with its field."""
    with pytest.raises(InvalidError, match=r"^status.allocatable: "):
        read_node({"status": {"allocatable": []}}, Units())


@pytest.mark.parametrize(
    ("units", "count", "sizes", "unit"),
    [
        (15, 1, [15360], "GiB"),
        (60, 4, [15360] * 4, "GiB"),
        (5, 1, [6069], "GiB"),
        (11, 1, [12282], "GiB"),
        (79, 1, [81559], "GiB"),
        (15360, 1, [15360], "MiB"),
        (61440, 4, [15360] * 4, "MiB"),
        (15109, 1, [15360], "MiB"),
        (30, 2, [15360, 40960], "GiB"),
        (80, 2, [15360, 40960], "GiB"),
        (100, 1, [15360], None),
        (15, 0, [15360], "GiB"),
        (15, 1, [], None),
    ],
)
def test_gpushares_unit_is_told_by_the_cards(
    units: int, count: int, sizes: list[int], unit: str | None
) -> None:
    """What a node offers for each card fits its size in GiB, in MiB, or leaves a doubt."""
    cards = tuple(card(index, memory_bytes=size * MIB) for index, size in enumerate(sizes))
    offered = {names.GPUSHARE_MEMORY: units, names.GPUSHARE_COUNT: count}

    assert unit == gpushare.unit_of(offered, cards)


def test_instances_say_nothing_about_gpushares_unit() -> None:
    """Gpushare counts cards, not slices."""
    instances = (card(memory_bytes=5 * GIB, profile="1g.5gb"),)

    assert None is gpushare.unit_of({names.GPUSHARE_MEMORY: 5, names.GPUSHARE_COUNT: 1}, instances)


@pytest.mark.parametrize(
    ("units", "sizes", "factor"),
    [
        (15360, [15360], 1),
        (30720, [15360] * 2, 1),
        (1536, [15360], 10),
        (16310, [81559] * 2, 10),
        (815, [81559], 100),
        (40000, [15360], None),
        (0, [15360], None),
        (1, [15360] * 2, None),
        (15360, [], None),
    ],
)
def test_volcanos_factor_is_told_by_the_cards(
    units: int, sizes: list[int], factor: int | None
) -> None:
    """The factor is how many MiB one unit must be for the offer to fit the cards."""
    cards = tuple(card(index, memory_bytes=size * MIB) for index, size in enumerate(sizes))

    assert factor == volcano.factor_of({names.VOLCANO_MEMORY: units}, cards)


@pytest.mark.parametrize(
    ("raw", "unit"),
    [
        (node(card()), GIB),
        (node(card(), allocatable={"aliyun.com/gpu-mem": "15360"}), MIB),
        (node(card(), allocatable={"aliyun.com/gpu-mem": "100"}), None),
        (node(card(), allocatable={"nvidia.com/gpu": "1"}), 7),
        (node(), 7),
        (node(allocatable={"aliyun.com/gpu-mem": "15360"}, labels=GFD), None),
        (
            node(
                allocatable={"aliyun.com/gpu-mem": "30720", "aliyun.com/gpu-count": "2"}, labels=GFD
            ),
            MIB,
        ),
    ],
    ids=["GiB", "MiB", "doubt", "not offered", "no cards", "half the cards", "by labels"],
)
def test_a_nodes_unit_comes_before_the_setting(raw: dict[str, Any], unit: int | None) -> None:
    """Its own figures decide; a doubt is a doubt; where nothing compares the setting counts."""
    assert unit == read(raw, Units(gpushare_bytes=7)).units.gpushare_bytes


@pytest.mark.parametrize(("said", "unit"), [("MiB", MIB), ("GiB", GIB), ("TiB", None)])
def test_an_agents_word_on_the_unit_comes_first(said: str, unit: int | None) -> None:
    """The agent sees more than the node's figures; a word of its that is none leaves a doubt."""
    words = write_cards(node_cards(card(), units={names.GPUSHARE_MEMORY: said}))

    assert unit == read(node(annotations={names.CARDS: words})).units.gpushare_bytes


def test_a_broken_card_does_not_change_the_unit() -> None:
    """A device that fails leaves what can be allocated, not what the node has."""
    found = read(
        node(
            card(0),
            card(1),
            allocatable={"aliyun.com/gpu-mem": "15", "volcano.sh/gpu-memory": "1536"},
            capacity={
                "aliyun.com/gpu-mem": "30",
                "aliyun.com/gpu-count": "2",
                "volcano.sh/gpu-memory": "3072",
            },
        )
    )

    assert (GIB, 10) == (found.units.gpushare_bytes, found.units.volcano_factor)
    assert {"aliyun.com/gpu-mem", "volcano.sh/gpu-memory"} == found.resources


@pytest.mark.parametrize(
    ("raw", "factor"),
    [
        (node(card(), allocatable={"volcano.sh/gpu-memory": "1536"}), 10),
        (node(card(), allocatable={"volcano.sh/gpu-memory": "99999"}), 3),
        (node(allocatable={"volcano.sh/gpu-memory": "1536"}), 3),
        (node(card()), 3),
        (node(annotations={names.CARDS: write_cards(node_cards(card(), factor=7))}), 7),
    ],
    ids=["told by the cards", "doubt", "no cards", "not offered", "told by the agent"],
)
def test_a_nodes_factor_comes_before_the_setting(raw: dict[str, Any], factor: int) -> None:
    """The agent's word first, then the node's figures, then the operator's setting."""
    assert factor == read(raw, Units(volcano_factor=3)).units.volcano_factor


@pytest.mark.parametrize(
    ("labels", "clients", "caps"),
    [
        ({}, 5, False),
        ({"cloud.google.com/gke-max-shared-clients-per-gpu": "4"}, 4, False),
        (
            {
                "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
                "cloud.google.com/gke-gpu-sharing-strategy": "MPS",
            },
            4,
            True,
        ),
        ({"cloud.google.com/gke-gpu-sharing-strategy": "TIME_SHARING"}, 5, False),
        ({"nvidia.com/gpu.replicas": "8", "nvidia.com/gpu.sharing-strategy": "mps"}, 8, True),
        ({"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}, 1, False),
        ({"nvidia.com/gpu.replicas": "no"}, 5, False),
    ],
)
def test_who_shares_a_card_is_told_by_labels(
    labels: dict[str, str], clients: int, *, caps: bool
) -> None:
    """GKE and the device plugin say how many pods share a card and whether MPS caps them."""
    found = read(node(labels=labels), Units(clients=5)).units

    assert (clients, caps) == (found.clients, found.driver_caps)


def test_what_a_node_states_of_its_cards() -> None:
    """A node that states nothing, or something unreadable, states nothing."""
    seen = node_cards(card(0), card(1))

    assert seen == stated_cards(node(annotations={names.CARDS: write_cards(seen)}))
    assert None is stated_cards(node())
    assert None is stated_cards(node(annotations={names.CARDS: '{"v":2}'}))
