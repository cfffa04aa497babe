"""
What a pod may use on a card, and each of its containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpufence import names
from gpufence.dialects import Dialect, Undeclared, Units, Unreadable
from gpufence.limits import Limits, Part, Place, read_limits
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.wishes import read_namespace, read_wishes
from tests.builders import T4_BYTES, container, gpushare, pod, sidecar

if TYPE_CHECKING:
    from collections.abc import Mapping

GPU = {"nvidia.com/gpu": "1"}
VOLCANO = "volcano.sh/gpu-memory"


def said(
    raw: dict[str, Any],
    *,
    namespace: Mapping[str, str] | None = None,
    units: Units | None = None,
    card_bytes: int | None = T4_BYTES,
) -> Limits | Undeclared | Unreadable:
    read = read_pod(raw)
    wishes = read_wishes(read.annotations, frozenset(item.name for item in read.containers))
    place = Place(units or Units(), card_bytes)
    return read_limits(read, wishes, read_namespace(namespace or {}), place)


def limits(raw: dict[str, Any], **more: Any) -> Limits:
    found = said(raw, **more)
    assert isinstance(found, Limits), found
    return found


def unreadable(raw: dict[str, Any], **more: Any) -> str:
    found = said(raw, **more)
    assert isinstance(found, Unreadable), found
    return found.problem.sentence


def parts(found: Limits) -> dict[str, int | None]:
    return {part.container: part.limit_bytes for part in found.parts}


def gibibytes(found: Limits) -> dict[str, float]:
    """
    Return every part in GiB, and the pod's limit under an empty name.
    """
    amounts = {"": found.limit_bytes} | parts(found)
    return {name: amount / GIB for name, amount in amounts.items() if amount is not None}


def test_a_declared_amount_is_the_limit() -> None:
    """
    A pod with one GPU container has that container's limit, enforced.
    """
    assert Limits(
        dialect=Dialect.GPUSHARE,
        basis="units of 1Gi",
        limit_bytes=3 * GIB,
        parts=(Part("main", 3 * GIB, 1),),
        enforced=True,
        library_caps=False,
    ) == said(pod(gpushare()))


def test_a_pod_that_declares_nothing_stays_undeclared() -> None:
    """
    Without any amount there is nothing to enforce.
    """
    assert isinstance(said(pod()), Undeclared)


def test_an_unreadable_declaration_stays_unreadable() -> None:
    """
    A problem of the declaration is handed on as it is.
    """
    assert "is negative" in unreadable(pod(gpushare(units="-1")))


def test_the_annotation_limits_a_card_without_an_amount() -> None:
    """
    An amount for nvidia.com/gpu is the pod's own word, hence enforced.
    """
    found = limits(pod(container(**GPU), annotations={names.MEMORY: "6Gi"}))

    assert {"": 6, "main": 6} == gibibytes(found)
    assert found.enforced


@pytest.mark.parametrize(("memory", "size"), [("2Gi", 2), ("9Gi", 3)])
def test_the_annotation_tightens_what_resources_declare(memory: str, size: int) -> None:
    """
    The smaller of declared and annotated counts; nobody grants himself more than was scheduled.
    """
    found = limits(pod(gpushare(units="3"), annotations={names.MEMORY: memory}))

    assert {"": size, "main": size} == gibibytes(found)


def test_the_annotation_stands_alone_where_no_resource_is_asked_for() -> None:
    """
    A pod that reaches the GPU by other ways is taken at its word.
    """
    found = limits(pod(container("a"), container("b"), annotations={names.MEMORY: "6Gi"}))

    assert {"": 6, "a": 3, "b": 3} == gibibytes(found)
    assert (Dialect.ANNOTATION, True) == (found.dialect, found.enforced)


def test_a_key_for_one_container_speaks_of_that_container_only() -> None:
    """
    Without a pod's amount the containers without a key are no GPU containers.
    """
    annotations = {"gpufence.io/memory.a": "2Gi"}
    found = limits(pod(container("a"), container("b"), annotations=annotations))

    assert {"": 2, "a": 2} == gibibytes(found)


def test_a_key_for_one_container_leaves_the_rest_to_the_others() -> None:
    """
    The pod's amount is split among those without a key, and stays the pod's limit.
    """
    annotations = {names.MEMORY: "8Gi", "gpufence.io/memory.a": "2Gi"}
    found = limits(pod(container("a"), container("b"), container("c"), annotations=annotations))

    assert {"": 8, "a": 2, "b": 3, "c": 3} == gibibytes(found)


def test_a_pod_of_init_containers_alone_has_its_amount_too() -> None:
    """
    Where no regular container can have the amount, those there are have it.
    """
    raw = pod(init=[container("warm")], annotations={names.MEMORY: "6Gi"})
    raw["spec"]["containers"] = []

    assert {"": 6, "warm": 6} == gibibytes(limits(raw))


def test_a_pod_without_containers_has_no_limit_to_give() -> None:
    """
    An annotation on a pod that runs nothing limits nothing.
    """
    raw = pod(annotations={names.MEMORY: "6Gi"})
    raw["spec"]["containers"] = []

    assert isinstance(said(raw), Undeclared)


@pytest.mark.parametrize("limits_of_main", [{}, GPU], ids=["no resource", "no amount"])
def test_an_unreadable_amount_never_means_no_limit(limits_of_main: dict[str, str]) -> None:
    """
    Where the annotation would be the only amount, its mistake makes the pod unreadable.
    """
    raw = pod(container(**limits_of_main), annotations={names.MEMORY: "6GB"})

    assert unreadable(raw).startswith('metadata.annotations[gpufence.io/memory]: "6GB" is not a')


def test_an_unreadable_key_of_a_container_never_means_no_limit() -> None:
    """
    The same holds for a container's own key.
    """
    raw = pod(container(**GPU), annotations={"gpufence.io/memory.main": "many"})

    assert "gpufence.io/memory.main" in unreadable(raw)


def test_an_unreadable_amount_leaves_the_declared_one() -> None:
    """
    What the scheduler counted stays the limit when the annotation that tightens it is broken.
    """
    found = limits(pod(gpushare(units="3"), annotations={names.MEMORY: "6GB"}))

    assert {"": 3, "main": 3} == gibibytes(found)


def test_a_readable_amount_counts_beside_an_unreadable_one() -> None:
    """
    One good amount is enough for a limit.
    """
    annotations = {names.MEMORY: "6Gi", "gpufence.io/memory.main": "x"}
    found = limits(pod(container(**GPU), annotations=annotations))

    assert {"": 6, "main": 6} == gibibytes(found)


def test_a_container_forgotten_by_the_keys_is_named() -> None:
    """
    Of several GPU containers each needs an amount from somewhere.
    """
    raw = pod(
        container("a", **GPU), container("b", **GPU), annotations={"gpufence.io/memory.a": "2Gi"}
    )

    assert (
        'metadata.annotations[gpufence.io/memory.b]: "" is missing while other containers of the '
        "pod have an amount; add it, or set gpufence.io/memory for the pod"
    ) == unreadable(raw)


def test_a_container_left_with_nothing_is_named() -> None:
    """
    Keys that use up the pod's amount leave no part of zero behind.
    """
    raw = pod(
        container("a", **GPU),
        container("b", **GPU),
        annotations={names.MEMORY: "2Gi", "gpufence.io/memory.a": "2Gi"},
    )

    assert (
        'metadata.annotations[gpufence.io/memory]: "2Gi" leaves under 1 MiB to b; '
        "raise it, or lower the amounts of the other containers"
    ) == unreadable(raw)


def test_keys_beyond_the_pods_amount_shrink_to_it() -> None:
    """
    The pod's amount is the limit; parts that exceed it together shrink in proportion.
    """
    found = limits(
        pod(
            container("a", **GPU),
            container("b", **GPU),
            annotations={
                names.MEMORY: "3Gi",
                "gpufence.io/memory.a": "4Gi",
                "gpufence.io/memory.b": "2Gi",
            },
        )
    )

    assert 3 * GIB == found.limit_bytes
    assert {"a": 2 * GIB, "b": GIB} == {
        name: round((size or 0) / MIB) * MIB for name, size in parts(found).items()
    }
    assert sum(size or 0 for size in parts(found).values()) <= 3 * GIB


def test_the_amount_is_split_among_those_who_run_together() -> None:
    """
    An init container has the amount to itself, beside the sidecars that run with it.
    """
    found = limits(
        pod(
            container("a", **GPU),
            container("b", **GPU),
            init=[container("warm", **GPU), sidecar("proxy", **GPU)],
            annotations={names.MEMORY: "6Gi"},
        )
    )

    assert {"": 6, "warm": 6, "proxy": 2, "a": 2, "b": 2} == gibibytes(found)


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
