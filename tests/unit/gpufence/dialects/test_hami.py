"""
HAMi, whose library caps by itself.
"""

from __future__ import annotations

import pytest

from gpufence.quantity import MIB
from tests.support.builders import T4_BYTES, container, pod
from tests.unit.gpufence.dialects.declared import amounts, declared

MEMORY = "nvidia.com/gpumem"
PERCENTAGE = "nvidia.com/gpumem-percentage"
GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("limits", "claim"),
    [
        ({MEMORY: "3000"}, (3000 * MIB, 1)),
        ({MEMORY: "3000", GPU: "2"}, (3000 * MIB, 2)),
        ({PERCENTAGE: "25", GPU: "1"}, (T4_BYTES // 4, 1)),
        ({PERCENTAGE: "100"}, (T4_BYTES, 1)),
    ],
)
def test_memory_is_per_card(limits: dict[str, str], claim: tuple[int, int]) -> None:
    """
    MiB or a percentage hold on each of the cards that nvidia.com/gpu counts.
    """
    found = declared(pod(container(**limits)))

    assert {"main": claim} == amounts(found)
    assert ("hami", True, False) == (found.dialect, found.library_caps, found.implied)


def test_a_container_without_memory_has_the_card() -> None:
    """
    Beside a container with an amount, one that only asks for a card has all of it.
    """
    found = declared(pod(container("a", **{MEMORY: "3000"}), container("b", **{GPU: "1"})))

    assert {"a": (3000 * MIB, 1), "b": (T4_BYTES, 1)} == amounts(found)
