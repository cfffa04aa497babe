"""Targets in the words of each sharing system."""

from typing import Any

import pytest

from gpufence import names
from gpufence.dialects import SPECS, Units
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.verbs.recommend.patches import NodeWords, Wanted, wanted
from tests.support.builders import container, pod, sidecar

T4 = NodeWords(Units(), 15_360 * MIB)
TARGET = {"main": 5000 * MIB}


def said(
    *containers: dict[str, Any],
    targets: dict[str, int] | None = None,
    nodes: NodeWords = T4,
    annotations: dict[str, str] | None = None,
) -> Wanted:
    made = pod(*containers, annotations=annotations or {})
    return wanted(read_pod(made), TARGET if targets is None else targets, nodes)


def main(**resources: str) -> dict[str, Any]:
    return container(**resources) | {"name": "main"}


@pytest.mark.parametrize(
    ("resource", "value", "nodes", "expected"),
    [
        (names.GPUSHARE_MEMORY, "3", T4, "5"),
        (names.GPUSHARE_MEMORY, "3000", NodeWords(Units(MIB), None), "5000"),
        (names.VOLCANO_MEMORY, "3000", T4, "5000"),
        (names.VOLCANO_MEMORY, "300", NodeWords(Units(volcano_factor=10), None), "500"),
        (names.VOLCANO_VGPU_MEMORY, "300", NodeWords(Units(volcano_factor=16), None), "313"),
        (names.VOLCANO_VGPU_PERCENTAGE, "80", T4, "33"),
        (names.HAMI_MEMORY, "3000", T4, "5000"),
        (names.HAMI_PERCENTAGE, "80", T4, "33"),
        (names.HAMI_PERCENTAGE, "80", NodeWords(Units(), GIB), "100"),
    ],
)
def test_an_amount_is_written_in_its_own_unit_rounded_up(
    resource: str, value: str, nodes: NodeWords, expected: str
) -> None:
    """Whole units hold the target, whatever one of them is on the nodes."""
    assert Wanted({"main": {resource: expected}}, {}, {}) == said(
        main(**{resource: value}), nodes=nodes
    )


@pytest.mark.parametrize(
    ("resource", "nodes", "why"),
    [
        (names.GPUSHARE_MEMORY, NodeWords(Units(None), None), "the unit of aliyun.com/gpu-mem is"),
        (names.HAMI_PERCENTAGE, NodeWords(Units(), None), "the memory of its card is not known"),
        (f"{names.NVIDIA_MIG_PREFIX}1g.5gb", T4, "its MIG instance is its card"),
    ],
)
def test_what_nobody_can_say_has_its_reason(resource: str, nodes: NodeWords, why: str) -> None:
    """A number whose meaning is unknown is not written."""
    change = said(main(**{resource: "1"}), nodes=nodes)

    assert ({}, {}) == (change.resources, change.annotations)
    assert change.unsaid["main"].startswith(why)


def test_a_claim_is_an_amount_that_no_template_of_a_pod_says() -> None:
    """What a resource claim asks for stands in an object of its own."""
    claims = {"claims": [{"name": "gpu"}]}
    change = said({"name": "main", "image": "x", "resources": claims})

    assert ({}, {}) == (change.resources, change.annotations)
    assert change.unsaid["main"].startswith("its resource claim is its amount")


def test_a_card_without_an_amount_gets_the_annotation() -> None:
    """Where resources say no amount, ours does."""
    assert Wanted({}, {names.MEMORY: "5000Mi"}, {}) == said(main(**{names.NVIDIA_GPU: "1"}))


def test_several_containers_get_one_annotation_each() -> None:
    """What one container needs is not given to the other."""
    two = (
        main(**{names.NVIDIA_GPU: "1"}),
        sidecar("side", **{names.NVIDIA_GPU: "1"}),
        container() | {"name": "proxy"},
    )

    assert {
        f"{names.MEMORY_OF_CONTAINER}main": "5000Mi",
        f"{names.MEMORY_OF_CONTAINER}side": "1Gi",
    } == said(*two, targets={"main": 5000 * MIB, "side": GIB}).annotations
    assert {"main": "container side has no target beside it"} == said(*two).unsaid


def test_a_pod_without_any_resource_is_told_by_its_containers() -> None:
    """Who declares by annotation alone is granted by it."""
    assert {names.MEMORY: "5000Mi"} == said(main()).annotations


@pytest.mark.parametrize(
    ("annotations", "nodes", "expected"),
    [
        ({names.KAI_MEMORY: "3000"}, T4, {names.KAI_MEMORY: "5000"}),
        ({names.KAI_FRACTION: "0.5"}, T4, {names.KAI_FRACTION: "0.33"}),
        ({names.KAI_FRACTION: "0.5"}, NodeWords(Units(), GIB), {names.KAI_FRACTION: "0.99"}),
        ({names.KAI_FRACTION: "0.5"}, NodeWords(Units(), None), {names.MEMORY: "5000Mi"}),
    ],
    ids=["amount", "share", "more than a card", "card unknown"],
)
def test_kai_reads_its_own_annotations(
    annotations: dict[str, str], nodes: NodeWords, expected: dict[str, str]
) -> None:
    """Its amount, or its share where the card is known."""
    change = said(main(), nodes=nodes, annotations=annotations)

    assert expected == change.annotations


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({names.MEMORY: "2Gi"}, {names.MEMORY: "5000Mi"}),
        (
            {f"{names.MEMORY_OF_CONTAINER}main": "2Gi"},
            {f"{names.MEMORY_OF_CONTAINER}main": "5000Mi"},
        ),
        ({names.MEMORY: "5000Mi"}, {}),
    ],
    ids=["pod", "container", "the same"],
)
def test_an_annotation_beside_an_amount_is_written_too(
    annotations: dict[str, str], expected: dict[str, str]
) -> None:
    """The smaller of both counts, so that the old one would hold the pod below its target."""
    for resource in (names.HAMI_MEMORY, names.NVIDIA_GPU):
        change = said(main(**{resource: "1"}), annotations=annotations)

        assert expected == change.annotations


def test_what_says_so_already_is_left_alone() -> None:
    """An amount that is the target's is no change."""
    assert Wanted({}, {}, {}) == said(main(**{names.HAMI_MEMORY: "5000"}))


def test_a_container_without_a_target_is_left_alone() -> None:
    """Nothing is written of what nobody knows."""
    assert Wanted({}, {}, {}) == said(main(**{names.HAMI_MEMORY: "1"}), targets={})


def test_every_resource_that_counts_memory_can_be_written() -> None:
    """Each dialect with amounts says what one of them is."""
    counted = {key for spec in SPECS for key in (*spec.unit_bytes, *spec.percentages)}

    assert {
        names.GPUSHARE_MEMORY,
        names.VOLCANO_MEMORY,
        names.VOLCANO_VGPU_MEMORY,
        names.VOLCANO_VGPU_PERCENTAGE,
        names.HAMI_MEMORY,
        names.HAMI_PERCENTAGE,
        names.KAI_MEMORY,
    } == counted
