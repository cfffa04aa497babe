"""
Volcano's counted memory, whole cards and vGPUs.
"""

from __future__ import annotations

import pytest

from gpufence.dialects import Sum, Units
from gpufence.quantity import MIB
from tests.support.builders import T4_BYTES, container, pod
from tests.unit.gpufence.dialects.declared import amounts, declared, unreadable

MEMORY = "volcano.sh/gpu-memory"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
VGPU_PERCENTAGE = "volcano.sh/vgpu-memory-percentage"
VGPU_NUMBER = "volcano.sh/vgpu-number"


@pytest.mark.parametrize(("factor", "size"), [(1, 400 * MIB), (10, 4000 * MIB)])
def test_counted_memory_is_mebibytes_times_the_factor(factor: int, size: int) -> None:
    """
    The device plugin's factor scales every request.
    """
    found = declared(pod(container(**{MEMORY: "400"})), Units(volcano_factor=factor))

    assert {"main": (size, 1)} == amounts(found)
    assert ("volcano", Sum.LARGEST_INIT) == (found.dialect, found.sum)
    assert f"units of {factor} MiB" == found.basis
    assert () == found.notes


def test_several_containers_draw_a_note() -> None:
    """
    Volcano's device plugin serves one GPU container of a pod and fails the next.
    """
    (note,) = declared(pod(container("a", **{MEMORY: "1"}), container("b", **{MEMORY: "1"}))).notes

    assert (
        'volcano.sh/gpu-memory: "a, b" is asked for by several containers, of which Volcano starts '
        "only one; ask for it in one container"
    ) == note.sentence


@pytest.mark.parametrize(
    ("limits", "claim"),
    [
        ({VGPU_MEMORY: "2048"}, (20480 * MIB, 1)),
        ({VGPU_MEMORY: "100", VGPU_NUMBER: "2"}, (1000 * MIB, 2)),
        ({VGPU_PERCENTAGE: "50", VGPU_NUMBER: "2"}, (T4_BYTES // 2, 2)),
        ({VGPU_NUMBER: "1"}, (T4_BYTES, 1)),
        ({VGPU_MEMORY: "100", VGPU_PERCENTAGE: "50"}, (1000 * MIB, 1)),
    ],
)
def test_vgpus_say_memory_percentage_or_nothing(
    limits: dict[str, str], claim: tuple[int, int]
) -> None:
    """
    Memory counts before percentage; neither means the whole card; the library caps all of them.
    """
    found = declared(pod(container(**limits)), Units(volcano_factor=10))

    assert {"main": claim} == amounts(found)
    assert ("volcano-vgpu", True) == (found.dialect, found.library_caps)
    assert not found.implied


def test_more_than_a_whole_card_never_runs() -> None:
    """
    A percentage above 100 is refused with its field.
    """
    found = unreadable(pod(container(**{VGPU_PERCENTAGE: "101"})))

    assert found.never_runs
    assert (
        f'spec.containers[0].resources.limits[{VGPU_PERCENTAGE}]: "101" is more than a whole card; '
        "write a percentage from 1 to 100"
    ) == found.problem.sentence
