"""The cards that a DRA driver publishes."""

from typing import Any

import pytest

from gpufence.cards import Card, Instance
from gpufence.quantity import GIB
from gpufence.slices import cards_of, read_slice

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


def test_a_card_is_read_by_its_drivers_name() -> None:
    """UUID, memory and compute capability are those that the driver publishes."""
    assert {"gpu.nvidia.com/node-1/gpu-0": T4} == cards_of([sliced(device())])


def test_attributes_may_carry_the_drivers_name() -> None:
    """`gpu.nvidia.com/uuid` is the same as `uuid`."""
    item = device()
    item["attributes"]["gpu.nvidia.com/uuid"] = item["attributes"].pop("uuid")

    assert [T4] == list(cards_of([sliced(item)]).values())


def test_memory_may_carry_the_drivers_name() -> None:
    """`gpu.nvidia.com/memory` is the same as `memory`, with its policy."""
    item = device() | {"allowMultipleAllocations": True}
    memory = item["capacity"].pop("memory") | {"requestPolicy": {"default": "1Gi"}}
    item["capacity"]["gpu.nvidia.com/memory"] = memory
    found = read_slice(sliced(item))

    assert found is not None
    assert ([T4], GIB) == (list(found.cards.values()), found.least_bytes)


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


def test_a_slice_that_cannot_be_read_is_none() -> None:
    """One slice whose spec is no object costs nobody the others."""
    assert read_slice({"spec": "nothing"}) is None


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
    """
    The policy's default, all of the card where there is none, and the least of all shared cards.
    """
    shared = device("gpu-0") | {"allowMultipleAllocations": True}
    shared["capacity"]["memory"]["requestPolicy"] = policy
    whole = device("gpu-1", memory="1Gi")
    found = read_slice(sliced(shared, whole))

    assert found is not None
    assert expected == found.least_bytes
    assert getattr(read_slice(sliced(whole)), "least_bytes", 0) is None
