"""
How containers add up, what stays unknown, and what a namespace has to say about it.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpufence import names
from gpufence.dialects import Units
from gpufence.limits import Part
from gpufence.quantity import GIB, MIB
from tests.support.builders import container, gpushare, pod, sidecar
from tests.unit.gpufence.limited import gibibytes, limits, parts

GPU = {"nvidia.com/gpu": "1"}
VOLCANO = "volcano.sh/gpu-memory"


def test_the_larger_of_life_and_start_is_the_pods_limit() -> None:
    """
    Containers that run together add up; an init container counts with the sidecars before it.
    """
    key = "nvidia.com/gpumem"
    found = limits(
        pod(
            container("a", **{key: "1024"}),
            container("b", **{key: "1024"}),
            init=[
                sidecar("proxy", **{key: "1024"}),
                container("warm", **{key: "4096"}),
                sidecar("late", **{key: "1024"}),
            ],
        )
    )

    assert {"": 5, "proxy": 1, "warm": 4, "late": 1, "a": 1, "b": 1} == gibibytes(found)


def test_gpushare_counts_regular_containers_only() -> None:
    """
    What gpushare does not book, nobody may use beside what it does.
    """
    found = limits(pod(gpushare("a", "3"), gpushare("b", "1"), init=[gpushare("warm", "9")]))

    assert {"": 4, "warm": 4, "a": 3, "b": 1} == gibibytes(found)


def test_gpushare_in_init_containers_alone_is_still_limited() -> None:
    """
    A pod that gpushare books at zero has the limit it wrote.
    """
    assert {"": 3, "warm": 3} == gibibytes(limits(pod(init=[gpushare("warm", "3")])))


def test_volcano_counts_the_largest_init_container() -> None:
    """
    Volcano books the larger of all containers and the largest init container, sidecar or not.
    """
    found = limits(
        pod(
            container("a", **{VOLCANO: "1024"}),
            init=[sidecar("proxy", **{VOLCANO: "1024"}), container("warm", **{VOLCANO: "2048"})],
        )
    )

    assert 2 * GIB == found.limit_bytes
    assert {"proxy": 682, "warm": 1365, "a": 1024} == {
        name: (size or 0) // MIB for name, size in parts(found).items()
    }


def test_a_share_of_an_unknown_card_is_unknown() -> None:
    """
    Unknown is None and never a number.
    """
    found = limits(pod(annotations={"gpu-fraction": "0.5"}), card_bytes=None)

    assert (None, {"main": None}) == (found.limit_bytes, parts(found))


def test_an_annotation_limits_a_share_of_an_unknown_card() -> None:
    """
    Where the share is unknown, the amount beside it counts.
    """
    annotations = {"gpu-fraction": "0.5", names.MEMORY: "2Gi"}

    assert {"": 2, "main": 2} == gibibytes(limits(pod(annotations=annotations), card_bytes=None))


def test_one_unknown_part_makes_the_sum_unknown() -> None:
    """
    A pod is not limited to the part of it that is known.
    """
    key = "nvidia.com/gpumem-percentage"
    found = limits(
        pod(
            container("a", **{key: "50"}),
            container("b", **{key: "50"}),
            annotations={"gpufence.io/memory.a": "2Gi"},
        ),
        card_bytes=None,
    )

    assert (None, {"a": 2 * GIB, "b": None}) == (found.limit_bytes, parts(found))


def test_a_vanishing_share_is_one_byte() -> None:
    """
    Zero would read as no limit.
    """
    annotations = {"gpu-fraction": "0.000000000000000001"}

    assert {"main": 1} == parts(limits(pod(annotations=annotations)))


@pytest.mark.parametrize(
    ("words", "enforced"), [({}, False), ({names.IMPLIED_LIMITS: "enabled"}, True)]
)
def test_an_implied_limit_is_enforced_on_demand(words: dict[str, str], *, enforced: bool) -> None:
    """
    A share that nobody wrote is reported, and enforced only where the namespace says so.
    """
    found = limits(pod(container(**GPU)), namespace=words, units=Units(clients=4))

    assert {"": 3.75, "main": 3.75} == gibibytes(found)
    assert enforced is found.enforced


def test_a_ceiling_lowers_what_pods_grant_themselves() -> None:
    """
    The namespace's ceiling counts, the parts follow it, and the pod's owner is told.
    """
    found = limits(
        pod(container(**GPU), annotations={names.MEMORY: "6Gi"}),
        namespace={names.MAX_MEMORY: "4Gi"},
    )

    (note,) = found.notes
    assert {"": 4, "main": 4} == gibibytes(found)
    assert (
        'metadata.annotations[gpufence.io/memory]: "6Gi" is above the namespace\'s '
        "gpufence.io/max-memory of 4Gi; "
        "the ceiling counts; ask for less, or have the ceiling raised"
    ) == note.sentence


@pytest.mark.parametrize(
    "raw",
    [
        pod(gpushare(units="3")),
        pod(container(**GPU)),
        pod(container(**GPU), annotations={names.MEMORY: "1Gi"}),
    ],
    ids=["booked by a scheduler", "implied", "below it"],
)
def test_a_ceiling_leaves_all_others_alone(raw: dict[str, Any]) -> None:
    """
    What a scheduler booked, what nobody wrote and what is within bounds is not lowered.
    """
    assert limits(raw) == limits(raw, namespace={names.MAX_MEMORY: "2Gi"})


def test_cards_and_profile_of_the_declaration_are_kept() -> None:
    """
    The limit holds on each of several cards, and says which MIG profile it is for.
    """
    found = limits(pod(container(**{"nvidia.com/mig-1g.5gb": "2"})), card_bytes=5 * GIB)

    assert (Part("main", 5 * GIB, 2),) == found.parts
    assert "1g.5gb" == found.profile


def test_a_capping_library_is_kept_in_mind() -> None:
    """
    Whoever injects settings can see that a library already caps.
    """
    assert limits(pod(container(**{"nvidia.com/gpumem": "2048"}))).library_caps
