"""The cards of a node: as its annotation, its labels or its DRA driver publish them."""

import json
from typing import Any

import pytest

from gpufence import names
from gpufence.candidates import CandidateCard, candidate_cards
from gpufence.cards import (
    LARGEST_MADE,
    SOLD,
    Card,
    Instance,
    cards_by_labels,
    read_capability,
    read_cards,
    shown_memory,
    write_cards,
)
from gpufence.dialects import Units
from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.nodes import read_node
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.slices import cards_of, read_slice
from tests.support.builders import CARDS, Sold, card, gpushare, labels_of, node, node_cards, pod


def written(**changes: object) -> str:
    """Return the annotation of one card with some of the card's fields changed."""
    said: dict[str, Any] = json.loads(write_cards(node_cards(card())))
    said["cards"][0] |= changes
    return json.dumps(said)


def test_the_annotation_is_one_line_of_versioned_json() -> None:
    """People and programs can read what an agent says about its node."""
    said = node_cards(card(), units={"aliyun.com/gpu-mem": "GiB"}, factor=1)

    assert (
        '{"v":1,"driver":"570.124.06","observed":"2026-01-02T03:04:05Z",'
        '"units":{"aliyun.com/gpu-mem":"GiB"},"factor":1,"cards":['
        '{"uuid":"GPU-0","index":0,"model":"Tesla T4","memory":"15360Mi","cc":"7.5"}]}'
    ) == write_cards(said)


@pytest.mark.parametrize(
    "cards",
    [
        (),
        (card(), card(1, compute_capability=None)),
        (card(uuid="GPU-a"), card(memory_bytes=5 * GIB, parent="GPU-a", profile="1g.5gb")),
        (card(memory_bytes=12_884_705_281),),
    ],
    ids=["none", "unknown capability", "instance", "odd size"],
)
def test_what_is_written_reads_back(cards: tuple[Any, ...]) -> None:
    """Cards survive the way exactly; a field of a newer agent changes nothing, its version does."""
    said = node_cards(*cards, units={"aliyun.com/gpu-mem": "MiB"})

    assert said == read_cards(write_cards(said))
    assert node_cards(card()) == read_cards(written(temperature=40))
    with pytest.raises(UnknownVersionError):
        read_cards('{"v":2}')


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"memory": "0"}, "memory"),
        ({"memory": "much"}, "memory"),
        ({"memory": None}, "memory"),
        ({"index": -1}, "index"),
        ({"uuid": 1}, "uuid"),
        ({"mig": []}, "mig"),
        ({"mig": {"parent": 1}}, "mig.parent"),
    ],
)
def test_a_broken_card_is_named(change: dict[str, object], field: str) -> None:
    """The error says which field of which card is wrong."""
    with pytest.raises(InvalidError) as caught:
        read_cards(written(**change))

    assert f"gpufence.io/cards.cards[0].{field}" == caught.value.problem.field


@pytest.mark.parametrize("factor", [0, "1", 1.5])
def test_a_broken_factor_is_named(factor: object) -> None:
    """Volcano's factor is a whole number of at least one."""
    with pytest.raises(InvalidError, match=r"^gpufence.io/cards.factor: "):
        read_cards(json.dumps({"v": 1, "factor": factor}))


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("12345.67890", (1234, 6789)),
        ("7.5", (7, 5)),
        ("12.0", (12, 0)),
        ("", None),
        ("8", None),
        ("8.x", None),
        ("x.1", None),
        ("-8.0", None),
    ],
)
def test_a_compute_capability_is_two_numbers(text: str, capability: tuple[int, int] | None) -> None:
    """Anything else is unknown rather than guessed."""
    assert capability == read_capability(text)


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


def test_labels_that_contradict_each_other_leave_both_open() -> None:
    """
    Of a part of a card, which clouds rent out too, the name is that of the whole card. What was
    measured counts before what is sold; as many cards as the cloud says are all alike.
    """
    labels = {names.KARPENTER_GPU_MEMORY: "2861", names.KARPENTER_GPU_NAME: "l4"}
    (found,) = cards_by_labels(labels)
    measured = labels_of("karpenter", CARDS[0]) | labels_of("measured", CARDS[0])
    four = cards_by_labels(labels_of("eks", CARDS[0]) | {names.EKS_GPU_COUNT: "4"})

    assert (Card("0", 0, "Tesla-T4", 15360 * MIB),) == cards_by_labels(measured)
    assert [(0, "t4"), (1, "t4"), (2, "t4"), (3, "t4")] == [
        (each.index, each.model) for each in four
    ]

    assert (2861 * MIB * 9 // 10, 24 * GIB) == (found.memory_bytes, found.most_bytes)


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


T4 = Card("GPU-0", 0, "Tesla T4", 15 * GIB, (7, 5))


def device(name: str = "gpu-0", memory: str = "15Gi", **attributes: Any) -> dict[str, Any]:
    said = {
        "type": {"string": "gpu"},
        "uuid": {"string": "GPU-0"},
        "productName": {"string": "Tesla T4"},
        "cudaComputeCapability": {"version": "7.5.0"},
        **attributes,
    }
    return {"name": name, "attributes": said, "capacity": {"memory": {"value": memory}}}


def sliced(*devices: dict[str, Any], pool: str = "node-1", **spec: Any) -> dict[str, Any]:
    generation = spec.pop("generation", 1)
    return {
        "spec": {
            "driver": "gpu.nvidia.com",
            "pool": {"name": pool, "generation": generation},
            "devices": list(devices),
            **spec,
        }
    }


def test_fields_may_carry_the_drivers_name() -> None:
    """`gpu.nvidia.com/uuid` is the same as `uuid`, and so is its memory, with the policy."""
    item = device() | {"allowMultipleAllocations": True}
    memory = item["capacity"].pop("memory") | {"requestPolicy": {"default": "1Gi"}}
    item["capacity"]["gpu.nvidia.com/memory"] = memory
    item["attributes"]["gpu.nvidia.com/uuid"] = item["attributes"].pop("uuid")
    found = read_slice(sliced(item))

    assert found is not None
    assert ({"gpu.nvidia.com/node-1/gpu-0": T4}, GIB) == (found.cards, found.least_bytes)
    assert {"gpu.nvidia.com/node-1/gpu-0": T4} == cards_of([sliced(device())])
    assert read_slice({"spec": "nothing"}) is None


def test_an_instance_is_a_card_of_its_own() -> None:
    """A MIG device names its parent and its profile."""
    mig = device(
        type={"string": "mig"},
        uuid={"string": "MIG-0"},
        parentUUID={"string": "GPU-0"},
        profile={"string": "1g.5gb"},
        index={"int": 3},
    )
    (card,) = cards_of([sliced(mig)]).values()

    assert ("MIG-0", 3, Instance("GPU-0", "1g.5gb")) == (card.uuid, card.index, card.mig)


@pytest.mark.parametrize("uuid", [{"string": ""}, {"string": 5}])
def test_a_device_without_a_uuid_is_known_by_its_name(uuid: dict[str, Any]) -> None:
    """An instance that is cut when a claim gets it has none before."""
    name = "gpu.nvidia.com/node-1/gpu-0"

    assert {name: T4._replace(uuid=name)} == cards_of([sliced(device(uuid=uuid))])


@pytest.mark.parametrize(
    "item",
    [
        sliced(device(), driver="nic.example.com"),
        sliced(device(memory="0")),
        sliced(device(memory="9999Ti")),
        sliced(device(memory="much")),
        sliced(device(index={"int": -1})),
        {"spec": {"pool": []}},
    ],
)
def test_what_cannot_be_read_is_left_out(item: dict[str, Any]) -> None:
    """It costs no other card its place."""
    assert [T4] == list(cards_of([item, sliced(device(), pool="node-2")]).values())


def test_the_newest_generation_of_a_pool_counts() -> None:
    """Several slices of one generation belong together, and older ones are gone."""
    old = sliced(device("gpu-9"), generation=1)
    new = [sliced(device(f"gpu-{place}"), generation=2) for place in (0, 1)]

    assert [
        {"gpu.nvidia.com/node-1/gpu-0", "gpu.nvidia.com/node-1/gpu-1"},
        {"gpu.nvidia.com/node-1/gpu-0", "gpu.nvidia.com/node-1/gpu-1"},
    ] == [set(cards_of(items)) for items in ([old, *new], [*new, old])]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"default": "1Gi"}, GIB),
        ({"default": "99Gi"}, 15 * GIB),
        ({"default": "much"}, 15 * GIB),
        ({}, 15 * GIB),
    ],
)
def test_what_a_claim_without_an_amount_gets_at_least(
    policy: dict[str, Any], expected: int
) -> None:
    """The policy's default, all of the card where there is none, the least of all shared cards."""
    shared = device("gpu-0") | {"allowMultipleAllocations": True}
    shared["capacity"]["memory"]["requestPolicy"] = policy
    whole = device("gpu-1", memory="1Gi")
    found = read_slice(sliced(shared, whole))

    assert found is not None
    assert expected == found.least_bytes
    assert getattr(read_slice(sliced(whole)), "least_bytes", 0) is None
