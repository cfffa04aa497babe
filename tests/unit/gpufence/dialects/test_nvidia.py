"""
NVIDIA's device plugin, GKE's sharing and MIG.
"""

from __future__ import annotations

import pytest

from gpufence.dialects import Units
from tests.support.builders import T4_BYTES, container, pod
from tests.unit.gpufence.dialects.declared import amounts, declared, unreadable

GPU = "nvidia.com/gpu"
CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"


def test_whole_cards_imply_the_card() -> None:
    """
    An unshared card's memory is the limit nobody wrote.
    """
    found = declared(pod(container(**{GPU: "2"})))

    assert {"main": (T4_BYTES, 2)} == amounts(found)
    assert ("nvidia", "whole cards", True, False) == (
        found.dialect,
        found.basis,
        found.implied,
        found.library_caps,
    )


@pytest.mark.parametrize(
    ("count", "size"), [("1", T4_BYTES // 4), ("2", T4_BYTES // 2), ("9", T4_BYTES)]
)
def test_shares_of_a_card_imply_their_part(count: str, size: int) -> None:
    """
    On a node that shares a card among four, each share is a quarter and never more than the card.
    """
    found = declared(pod(container(**{GPU: count})), Units(clients=4))

    assert {"main": (size, 1)} == amounts(found)
    assert "a card shared by 4" == found.basis
    assert not found.library_caps


def test_the_pods_own_selector_says_more_than_the_node() -> None:
    """
    A pod that selects nodes of eight clients will meet such a node.
    """
    found = declared(
        pod(container(**{GPU: "1"}), nodeSelector={CLIENTS: "8", STRATEGY: "time-sharing"}),
        Units(clients=2),
    )

    assert {"main": (T4_BYTES // 8, 1)} == amounts(found)
    assert not found.library_caps


@pytest.mark.parametrize("strategy", ["mps", "MPS"])
def test_mps_caps_by_itself(strategy: str) -> None:
    """
    Where the selector asks for MPS, the driver limits every client.
    """
    found = declared(pod(container(**{GPU: "1"}), nodeSelector={CLIENTS: "4", STRATEGY: strategy}))

    assert found.library_caps


@pytest.mark.parametrize(("clients", "caps"), [(4, True), (None, False)])
def test_a_node_with_mps_caps_only_what_it_shares(clients: int | None, *, caps: bool) -> None:
    """
    A whole card under MPS has nobody to be limited for.
    """
    found = declared(pod(container(**{GPU: "1"})), Units(clients=clients, driver_caps=True))

    assert caps is found.library_caps


def test_a_number_of_clients_that_is_none_is_unreadable() -> None:
    """
    The selector's mistake is named with its field.
    """
    found = unreadable(pod(container(**{GPU: "1"}), nodeSelector={CLIENTS: "many"}))

    assert f"nodeSelector[{CLIENTS}]" == found.problem.field


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.shared"])
def test_a_mig_instance_is_the_card(resource: str) -> None:
    """
    A slice is fenced by hardware, so its memory is the limit; shared slices have the same profile.
    """
    found = declared(pod(container(**{resource: "1"})))

    assert [("main", 1)] == [(claim.container, claim.cards) for claim in found.claims]
    assert ("mig", "1g.5gb", True) == (found.dialect, found.profile, found.implied)


def test_slices_of_two_sizes_are_unreadable() -> None:
    """
    No single card describes a pod with slices of several sizes.
    """
    limits = {"nvidia.com/mig-1g.5gb": "1", "nvidia.com/mig-2g.10gb": "1"}
    found = unreadable(pod(container(**limits)))

    assert (
        'resources.limits: "nvidia.com/mig-1g.5gb, nvidia.com/mig-2g.10gb" are MIG slices of '
        "several sizes in one pod; ask for one profile in each pod"
    ) == found.problem.sentence


def test_slices_beside_whole_cards_are_two_ways() -> None:
    """
    A container with a slice and one with a card are counted by different resources.
    """
    slices, whole = container("a", **{"nvidia.com/mig-1g.5gb": "1"}), container("b", **{GPU: "1"})

    assert "nvidia (whole cards), mig (MIG instances of 1g.5gb)" == (
        unreadable(pod(slices, whole)).problem.value
    )
