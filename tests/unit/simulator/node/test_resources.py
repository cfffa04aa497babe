"""
The Node object.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpufence.cards import read_cards
from gpufence.dialects import Units
from gpufence.nodes import read_node
from gpufence.quantity import GIB, MIB
from simulator.node.resources import (
    Machine,
    Taint,
    discovered,
    gpu_capacity,
    labels,
    node_object,
    node_status,
    said_cards,
)
from simulator.node.sharing import Dialect, Sharing
from tests.unit.simulator.node.builders import card, instance

T4S = (card(0), card(1))


def machine(dialect: Dialect = Dialect.GPUSHARE, **fields: Any) -> Machine:
    sharing = fields.pop("sharing", Sharing(dialect))
    return Machine("node-a", "10.1.2.3", fields.pop("cards", T4S), sharing, **fields)


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        (Sharing(Dialect.GPUSHARE), {"aliyun.com/gpu-mem": 30, "aliyun.com/gpu-count": 2}),
        (
            Sharing(Dialect.GPUSHARE, unit="MiB"),
            {"aliyun.com/gpu-mem": 30720, "aliyun.com/gpu-count": 2},
        ),
        (
            Sharing(Dialect.VOLCANO),
            {"volcano.sh/gpu-memory": 30720, "volcano.sh/gpu-number": 2},
        ),
        (
            Sharing(Dialect.VOLCANO, factor=10),
            {"volcano.sh/gpu-memory": 3072, "volcano.sh/gpu-number": 2},
        ),
        (Sharing(Dialect.NVIDIA), {"nvidia.com/gpu": 2}),
        (Sharing(Dialect.TIME_SLICING, replicas=4), {"nvidia.com/gpu": 8}),
        (Sharing(Dialect.GKE, replicas=3), {"nvidia.com/gpu": 6}),
        (
            Sharing(Dialect.HAMI, replicas=10),
            {"nvidia.com/gpu": 20, "nvidia.com/gpumem": 30720},
        ),
        (Sharing(Dialect.NONE), {}),
    ],
)
def test_each_dialect_offers_its_resources(sharing: Sharing, expected: dict[str, int]) -> None:
    """
    Two T4 appear as each sharing system's device plugin counts them.
    """
    assert expected == gpu_capacity(machine(sharing=sharing))


def test_gpushare_rounds_down_and_takes_the_first_card_for_all() -> None:
    """
    12,282 MiB are 11 units, and a larger second card counts no more.
    """
    cards = (card(0, 12282), card(1, 40960))

    assert 22 == gpu_capacity(machine(cards=cards))["aliyun.com/gpu-mem"]


def test_instances_are_offered_by_profile() -> None:
    """
    MIG instances are resources of their own, and their card is none any more.
    """
    cards = (card(0, 40960), instance(0), instance(1), instance(2, profile="3g.20gb"))

    assert {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-3g.20gb": 1} == gpu_capacity(
        machine(Dialect.NVIDIA, cards=cards)
    )


@pytest.mark.parametrize("dialect", [Dialect.GPUSHARE, Dialect.VOLCANO, Dialect.NVIDIA])
def test_a_machine_without_whole_cards_offers_none(dialect: Dialect) -> None:
    """
    Without a card there is nothing to share.
    """
    assert {} == gpu_capacity(machine(dialect, cards=()))


OWN = {
    "kubernetes.io/hostname": "node-a",
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
}


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        (Sharing(Dialect.GPUSHARE), {"gpushare": "true"}),
        (Sharing(Dialect.HAMI), {"gpu": "on"}),
        (Sharing(Dialect.NVIDIA), {}),
        (
            Sharing(Dialect.GKE, replicas=3),
            {
                "cloud.google.com/gke-accelerator": "tesla-t4",
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
            },
        ),
    ],
)
def test_each_dialect_has_its_labels(sharing: Sharing, expected: dict[str, str]) -> None:
    """
    A node carries the labels by which its sharing system knows it.
    """
    assert {**OWN, **expected} == labels(machine(sharing=sharing))


def test_a_gke_node_without_cards_is_an_ordinary_node() -> None:
    """
    Without a card a GKE node has no accelerator to name.
    """
    assert OWN == labels(machine(Dialect.GKE, cards=()))


def test_labels_of_the_user_stand_above_all() -> None:
    """
    A label that the user asks for replaces the node's own.
    """
    found = labels(machine(Dialect.NVIDIA, labels={"kubernetes.io/arch": "arm64", "a": "b"}))

    assert {**OWN, "kubernetes.io/arch": "arm64", "a": "b"} == found


GFD = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.product": "Tesla-T4",
    "nvidia.com/gpu.memory": "15360",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/gpu.compute.major": "7",
    "nvidia.com/gpu.compute.minor": "5",
}


def test_feature_discovery_is_there_on_request() -> None:
    """
    GPU feature discovery describes the first card.
    """
    assert {**OWN, **GFD} == labels(machine(Dialect.NVIDIA, gfd=True))


def test_time_slicing_shows_in_the_labels() -> None:
    """
    With time-slicing discovery always runs, names the replicas and marks the product as shared.
    """
    assert {
        **OWN,
        **GFD,
        "nvidia.com/gpu.product": "Tesla-T4-SHARED",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    } == labels(machine(Dialect.TIME_SLICING))


def test_discovery_tells_the_memory_of_instances() -> None:
    """
    The labels name the memory of each profile.
    """
    found = discovered((card(0, 40960), instance(0)), Sharing())

    assert "4864" == found["nvidia.com/mig-1g.5gb.memory"]


def test_discovery_without_cards_says_nothing() -> None:
    """
    Without a card there are no labels about cards.
    """
    assert {} == discovered((), Sharing())


def test_an_unknown_capability_is_left_out() -> None:
    """
    A card whose compute capability is unknown has no labels of it.
    """
    unknown = instance(0).__class__("GPU-9", 0, "Odd", GIB, None)

    assert "nvidia.com/gpu.compute.major" not in discovered((unknown,), Sharing())


@pytest.mark.parametrize(
    ("sharing", "units", "factor"),
    [
        (Sharing(Dialect.GPUSHARE, unit="MiB"), (("aliyun.com/gpu-mem", "MiB"),), None),
        (Sharing(Dialect.VOLCANO, factor=10), (), 10),
        (Sharing(Dialect.NVIDIA), (), None),
    ],
)
def test_the_annotation_says_what_an_agent_would(
    sharing: Sharing, units: tuple[tuple[str, str], ...], factor: int | None
) -> None:
    """
    The cards annotation tells cards, unit and factor.
    """
    found = said_cards(machine(sharing=sharing), "T0")

    assert (T4S, units, factor) == (found.cards, found.units, found.factor)


def test_the_annotation_is_written_on_request() -> None:
    """
    With a time the Node carries the annotation, readable by its own codec.
    """
    node = node_object(machine(driver="580"), cards_seen="T0", now="T1")
    metadata: Any = node["metadata"]
    found = read_cards(metadata["annotations"]["gpufence.io/cards"])

    assert ("580", "T0", T4S) == (found.driver, found.observed, found.cards)


def test_a_plain_node_has_no_annotation_and_no_taint() -> None:
    """
    Unasked, the Node has neither annotations nor taints.
    """
    node: Any = node_object(machine(), cards_seen=None, now="T1")

    assert ({}, {}) == (node["metadata"]["annotations"], node["spec"])


def test_taints_are_set() -> None:
    """
    Taints that are asked for are in the Node from its first moment.
    """
    taint = Taint("nvidia.com/gpu", "present", "NoSchedule")
    node: Any = node_object(machine(taints=(taint,)), cards_seen=None, now="T1")

    assert {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"} == (
        node["spec"]["taints"][0]
    )


@pytest.mark.parametrize(("ready", "status"), [(True, "True"), (False, "False")])
def test_the_status_says_whether_the_node_is_ready(*, ready: bool, status: str) -> None:
    """
    The Ready condition is what the caller says, since when it has been so, and seen now.
    """
    found: Any = node_status(machine(), "T2", "T1", ready=ready)
    first = found["conditions"][0]

    assert ("Ready", status, "T2", "T1") == (
        first["type"],
        first["status"],
        first["lastHeartbeatTime"],
        first["lastTransitionTime"],
    )


def test_the_product_reads_its_own_units_out_of_the_node() -> None:
    """
    What the Node says about cards and units is what gpufence reads from it.
    """
    found = read_node(node_object(machine(), cards_seen=None, now="T1"), Units())
    with_gfd = read_node(node_object(machine(gfd=True), cards_seen=None, now="T1"), Units())
    assert found is not None
    assert with_gfd is not None

    assert (GIB, 15360 * MIB) == (
        with_gfd.units.gpushare_bytes,
        with_gfd.cards[0].memory_bytes,
    )
