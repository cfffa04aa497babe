"""
What a pod may use on a card by declaration and annotation, and each of its containers.
"""

from __future__ import annotations

import pytest

from gpufence import names
from gpufence.dialects import Undeclared
from gpufence.limits import Limits, Part
from gpufence.quantity import GIB, MIB
from tests.support.builders import container, gpushare, pod, sidecar
from tests.unit.gpufence.limited import gibibytes, limits, parts, said, unreadable

GPU = {"nvidia.com/gpu": "1"}


def test_a_declared_amount_is_the_limit() -> None:
    """
    A pod with one GPU container has that container's limit, enforced.
    """
    assert Limits(
        dialect="gpushare",
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
    assert ("annotation", True) == (found.dialect, found.enforced)


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
