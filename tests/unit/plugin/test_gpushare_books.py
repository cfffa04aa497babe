"""What gpushare's scheduler has written on pods, where nobody else could have."""

import pytest

from kubectl_gpufence.gpushare.books import read_booking
from tests.support.gpushare_cases import booked


@pytest.mark.parametrize("cards", [5, "0", True])
def test_an_allocation_without_cards_leaves_the_pod_to_its_index(cards: object) -> None:
    """Go refuses all of an allocation in which a container has no map of cards."""
    booking = read_booking(booked("wrong", "gpu-1", "2", index="1", allocation={"0": cards}))

    assert booking is not None
    assert {1: 2} == booking.shares
