"""Targets in the words of each sharing system, as patches, and the cards that they would free."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence import names
from gpufence.dialects import SPECS, Units
from gpufence.need import Confidence
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import PodRow, Snapshot
from kubectl_gpufence.verbs.recommend.lines import Packing, PodShare, cards_needed, packings, unsure
from kubectl_gpufence.verbs.recommend.patches import (
    NodeWords,
    Wanted,
    kustomization,
    patch_of,
    targets_of,
    wanted,
)
from tests.support.builders import NEED_KEY, T4_BYTES, container, need_summary, pod, sidecar
from tests.support.plugin import card_row, pod_row, snapshot, use_row

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


MIG = "its MIG instance is its card: choose a profile that holds the target"
WORDS = NodeWords(Units(), 15_360 * MIB)


def owner(resources: dict[str, Any], **template: Any) -> dict[str, Any]:
    server = {"name": "server", "resources": resources}
    return {"spec": {"template": {"spec": {"containers": [server]}, **template}}}


def gpushare(amount: str, *, requests: bool = False) -> dict[str, Any]:
    asked = {names.GPUSHARE_MEMORY: amount}
    return {"limits": asked, **({"requests": asked | {"cpu": "1"}} if requests else {})}


def test_a_patch_says_the_target_where_the_amount_stands() -> None:
    """
    It is a strategic merge of the owner's template, with its command and its reason as comments.
    """
    patch, notes = patch_of([need_summary()], owner(gpushare("8")), WORDS)

    assert patch is not None
    assert () == notes
    assert {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "classifier", "namespace": "vision"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "server", "resources": {"limits": {names.GPUSHARE_MEMORY: "6"}}}
                    ]
                }
            }
        },
    } == patch.body
    assert (
        "kubectl -n vision patch deployment classifier --type strategic --patch-file FILE"
    ) == patch.command
    assert ("server on Tesla T4: 6144 MiB, confidence high, the peak and 15 %",) == patch.comments


def test_requests_follow_their_limits() -> None:
    """The API server takes an extended resource only where both are equal."""
    patch, _ = patch_of([need_summary()], owner(gpushare("8", requests=True)), WORDS)

    assert patch is not None
    (container,) = patch.body["spec"]["template"]["spec"]["containers"]  # type: ignore[index]  # a patch is plain JSON

    assert {names.GPUSHARE_MEMORY: "6"} == container["resources"]["requests"]


def test_sidecars_are_patched_where_they_stand() -> None:
    """A container that starts first is in a list of its own."""
    made = owner({})
    first = {"name": "first", "restartPolicy": "Always", "resources": gpushare("8")}
    made["spec"]["template"]["spec"]["initContainers"] = [{"name": "zero"}, first]
    item = need_summary(key=NEED_KEY._replace(container="first"))
    patch, _ = patch_of([item], made, WORDS)

    assert patch is not None
    spec = patch.body["spec"]["template"]["spec"]  # type: ignore[index]  # a patch is plain JSON

    assert ["initContainers"] == list(spec)


def test_the_template_of_a_cron_job_lies_deeper() -> None:
    """The patch follows the object's own structure."""
    item = need_summary(key=NEED_KEY._replace(kind="CronJob"))
    made = {"spec": {"jobTemplate": owner({"limits": {names.NVIDIA_GPU: "1"}})}}
    patch, _ = patch_of([item], made, WORDS)

    assert patch is not None
    template = patch.body["spec"]["jobTemplate"]["spec"]["template"]  # type: ignore[index]  # a patch is plain JSON

    assert {"metadata": {"annotations": {names.MEMORY: "6Gi"}}} == template


@pytest.mark.parametrize(
    ("resources", "notes"),
    [
        (gpushare("6"), ()),
        (
            {"limits": {f"{names.NVIDIA_MIG_PREFIX}1g.5gb": "1"}},
            ("vision Deployment/classifier, container server: " + MIG,),
        ),
    ],
    ids=["said already", "unsaid"],
)
def test_nothing_to_say_makes_no_patch(resources: dict[str, Any], notes: tuple[str, ...]) -> None:
    """A template that says so already stays as it is, and what cannot be said is told."""
    assert (None, notes) == patch_of([need_summary()], owner(resources), WORDS)


def test_the_card_on_which_it_needs_most_counts() -> None:
    """One amount serves all models of card, and none where one of them is not known."""
    other = need_summary(key=NEED_KEY._replace(card="NVIDIA L4"), target_bytes=7 * GIB)

    assert {"server": 7 * GIB} == targets_of([need_summary(), other])
    assert {} == targets_of([other, need_summary(target_bytes=None)])
    assert {} == targets_of([need_summary(target_bytes=None), other])


def test_a_kustomization_holds_each_patch_with_its_target() -> None:
    """It is a component, so that it can be listed in any kustomization."""
    patch, _ = patch_of([need_summary()], owner(gpushare("8")), WORDS)
    assert patch is not None

    assert {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [
            {
                "target": {"kind": "Deployment", "name": "classifier", "namespace": "vision"},
                "patch": "TEXT",
            }
        ],
    } == kustomization([patch], ["TEXT"])


def share(pod: str, amount: int, card: str = "GPU-0") -> PodShare:
    return PodShare(pod, card, "T4", amount * GIB, by_target=True)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], 0),
        ([share("a", 6), share("b", 5), share("c", 5), share("d", 4)], 2),
        ([share("a", 6), share("b", 6)], 2),
        ([share("a", 1), share("a", 1, "GPU-1")], 2),
        ([share("a", 40), share("b", 1)], 2),
    ],
    ids=["nobody", "full", "too large", "two of one pod", "larger than a card"],
)
def test_the_largest_are_packed_first(shares: list[PodShare], expected: int) -> None:
    """Each goes to the first card with room, and no pod gets one card twice."""
    assert expected == cards_needed(shares, 10 * GIB)


@given(st.lists(st.integers(1, 10), max_size=12))
def test_no_packing_is_better_than_the_sum_or_worse_than_its_bound(sizes: list[int]) -> None:
    """First fit decreasing needs at least the sum's cards, and at most twice as many and one."""
    needed = cards_needed([share(str(at), size) for at, size in enumerate(sizes)], 10 * GIB)

    assert -(-sum(sizes) // 10) <= needed <= 2 * -(-sum(sizes) // 10) + 1


def pods(*owners: str, **changes: Any) -> tuple[PodRow, ...]:
    return tuple(
        pod_row(use_row(**changes), namespace="vision", uid=f"u{at}", owner=owner)
        for at, owner in enumerate(owners)
    )


def seen(*rows: PodRow) -> dict[str, Snapshot]:
    return {"gpu-1": snapshot(*rows, cards=(card_row(), card_row(1)))}


def test_pods_of_an_owner_count_by_its_target() -> None:
    """A ReplicaSet's pods are their Deployment's, and what has no target counts by its limit."""
    rows = pods("ReplicaSet/classifier-7d9f8b6c4d", "ReplicaSet/classifier-7d9f8b6c4d", "Job/train")
    elsewhere = pod_row(use_row(card="GPU-1"), uid="u9", owner="", name="alone")

    assert [Packing("Tesla T4", T4_BYTES, 2, 2, 2, 4, 2, 18 * GIB)] == packings(
        seen(*rows, elsewhere), [need_summary()], ""
    )
    assert [Packing("Tesla T4", T4_BYTES, 2, 1, 1, 3, 2, 15 * GIB)] == packings(
        seen(*rows, elsewhere), [need_summary()], "vision"
    )


@pytest.mark.parametrize("order", [1, -1])
def test_an_owner_whose_container_has_no_target_has_none(order: int) -> None:
    """Then what its pods may hold at present counts."""
    side = need_summary(key=NEED_KEY._replace(container="side"), target_bytes=None)
    rows = pods("Deployment/classifier")
    (packing,) = packings(seen(*rows), [need_summary(), side][::order], "")

    assert (0, 3 * GIB) == (packing.by_target, packing.share_bytes)


def test_containers_of_a_pod_add_up() -> None:
    """What a pod takes of a card is the sum of its containers' targets."""
    side = need_summary(key=NEED_KEY._replace(container="side"), target_bytes=GIB)
    (packing,) = packings(seen(*pods("Deployment/classifier")), [need_summary(), side], "")

    assert (1, 7 * GIB) == (packing.by_target, packing.share_bytes)


def test_a_container_that_is_gone_does_not_add_up() -> None:
    """The larger of what was and what is counts, as of one that kept its name."""
    now, before = (
        need_summary(key=NEED_KEY._replace(container=name), target_bytes=size * GIB, last_day=day)
        for name, size, day in (("new", 4, "2026-11-19"), ("old", 6, "2026-11-16"))
    )
    (packing,) = packings(seen(*pods("Deployment/classifier")), [now, before], "")

    assert (1, 6 * GIB) == (packing.by_target, packing.share_bytes)


def test_what_nobody_knows_is_not_packed() -> None:
    """A pod of unknown use without a limit, and one on a card that is gone, are left out."""
    unknown = pods("", limit_bytes=None, used_bytes=None)
    gone = pod_row(use_row(card="GPU-gone"), uid="u9")
    (packing,) = packings(seen(*unknown, gone), [], "")

    assert (0, 0, 0) == (packing.held, packing.needed, packing.shares)


@pytest.mark.parametrize(("confidence", "lines"), [(Confidence.LOW, 1), (Confidence.MEDIUM, 0)])
def test_what_is_measured_too_little_is_said_once(confidence: Confidence, lines: int) -> None:
    """One line says why there is no target, however many have none."""
    said = unsure([need_summary()._replace(confidence=confidence)] * 2)

    assert lines == len(said)
    assert all("no target at low confidence" in line for line in said)
