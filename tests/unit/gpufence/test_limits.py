"""What a pod says, and the limit that follows."""

import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import PodOptions, read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.devices import Device
from gpufence.dialects import Undeclared, Units, Unreadable
from gpufence.dialects.spec import WHOLE_CARD
from gpufence.errors import InvalidError
from gpufence.limits import Limits, Part, read_limits
from gpufence.pods import (
    ContainerKind,
    PodClaim,
    phase_sums,
    read_claims,
    read_pod,
    smallest_of_phases,
)
from gpufence.quantity import GIB, MIB
from gpufence.shape import Object
from tests.support.builders import T4_BYTES, container, pod, sidecar


def test_a_container_knows_its_kind_and_place() -> None:
    """Errors can name where in the pod a container stands."""
    said = read_pod(pod(container("main"), init=[sidecar("proxy"), container("fetch")]))

    assert [
        ("proxy", ContainerKind.SIDECAR, "spec.initContainers[0]"),
        ("fetch", ContainerKind.INIT, "spec.initContainers[1]"),
        ("main", ContainerKind.REGULAR, "spec.containers[0]"),
    ] == [(item.name, item.kind, item.field) for item in said.containers]


def test_what_decides_about_memory_is_read() -> None:
    """
    Node name, selector, affinity and claims as they stand, and GPU resources that are known by name
    or by its beginning: what tells about nodes alone declares nothing. Every field may be absent.
    """
    asked = {"cpu": "1", "aliyun.com/gpu-mem": "3", "aliyun.com/gpu-count": "1"}
    raw = pod(
        container(**asked, **{"nvidia.com/mig-1g.5gb": "0"}),
        nodeName="node-1",
        nodeSelector={"zone": "a"},
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
        resourceClaims=[{"name": "gpu"}],
    )
    said = read_pod(raw)

    assert ("node-1", {"zone": "a"}) == (said.node_name, said.node_selector)
    assert {"requiredDuringSchedulingIgnoredDuringExecution": {}} == said.affinity
    assert (PodClaim("gpu", ""),) == said.claims == read_claims(raw)[0]
    assert {"aliyun.com/gpu-mem": "3", "nvidia.com/mig-1g.5gb": "0"} == said.containers[0].gpu
    assert ((), "", {}, ()) == tuple(
        getattr(read_pod({}), name) for name in ("containers", "node_name", "annotations", "claims")
    )


EARLY = [sidecar("first"), container("one"), sidecar("proxy"), container("two")]
AMOUNTS = {"first": 1, "one": 10, "proxy": 100, "two": 1000, "main": 10_000}


def test_a_container_runs_beside_the_sidecars_before_it() -> None:
    """An init container in one phase, a sidecar in every one from its start on."""
    read = read_pod(pod(container("main"), init=EARLY))

    assert [11, 1101, 10_101] == phase_sums(read, AMOUNTS)
    assert {"first": 3, "one": 3, "proxy": 5, "two": 5, "main": 7} == smallest_of_phases(
        read, [3, 5, 7]
    )


def test_a_thousand_sidecars_and_init_containers_take_no_square_of_them() -> None:
    """Reading a pod and summing its phases up allocates in proportion to its containers."""
    early = [item for n in range(2000) for item in (sidecar(f"s{n}"), container(f"i{n}"))]
    raw = pod(container("main"), init=early)
    tracemalloc.start()
    said = read_pod(raw)
    smallest_of_phases(said, phase_sums(said, {}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 8 * MIB


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"metadata": []}, "metadata"),
        ({"metadata": {"annotations": {"a": 1}}}, "metadata.annotations[a]"),
        ({"spec": {"containers": {}}}, "spec.containers"),
        ({"spec": {"containers": [{"name": 1}]}}, "spec.containers[0].name"),
        ({"spec": {"initContainers": [1]}}, "spec.initContainers[0]"),
        (
            {"spec": {"containers": [{"resources": {"limits": []}}]}},
            "spec.containers[0].resources.limits",
        ),
        ({"spec": {"nodeSelector": {"a": None, "b": 1}}}, "spec.nodeSelector[b]"),
        ({"spec": {"affinity": "x"}}, "spec.affinity"),
    ],
)
def test_what_is_no_pod_is_refused_with_its_field(raw: Object, field: str) -> None:
    """A value of the wrong shape is named by its path."""
    with pytest.raises(InvalidError) as caught:
        read_pod(raw)

    assert field == caught.value.problem.field


GPU = {"nvidia.com/gpu": "1"}


def said(
    raw: dict[str, Any],
    namespace: Mapping[str, str] | None = None,
    card_bytes: int = T4_BYTES,
) -> Limits | Undeclared | Unreadable:
    read = read_pod(raw)
    options = read_pod_options(read.annotations, frozenset(item.name for item in read.containers))
    card = CandidateCard(Units(), card_bytes)
    return read_limits(read, options, read_namespace_options(namespace or {}), card)


def limits(raw: dict[str, Any], **more: Any) -> Limits:
    found = said(raw, **more)
    assert isinstance(found, Limits), found
    return found


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        (
            {"gpufence.io/memory.a": "2Gi"},
            (
                'metadata.annotations[gpufence.io/memory.b]: "" is missing while other containers '
                "of the pod have an amount; add it, or set gpufence.io/memory for the pod"
            ),
        ),
        (
            {names.MEMORY: "2Gi", "gpufence.io/memory.a": "2Gi"},
            (
                'metadata.annotations[gpufence.io/memory]: "2Gi" leaves under 1 MiB to b; '
                "raise it, or lower the amounts of the other containers"
            ),
        ),
    ],
    ids=["forgotten", "nothing left"],
)
def test_a_container_without_an_amount_is_named(annotations: dict[str, str], sentence: str) -> None:
    """Of several GPU containers each needs an amount from somewhere, and one above zero."""
    found = said(pod(container("a", **GPU), container("b", **GPU), annotations=annotations))

    assert isinstance(found, Unreadable)
    assert sentence == found.problem.sentence


def test_keys_beyond_the_pods_amount_shrink_to_it() -> None:
    """The pod's amount is the limit; parts that exceed it together shrink in proportion."""
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
    sizes = [part.limit_bytes or 0 for part in found.parts]
    assert [2 * GIB, GIB] == [round(size / MIB) * MIB for size in sizes]
    assert sum(sizes) <= 3 * GIB


def test_a_vanishing_share_is_one_byte() -> None:
    """Zero would read as no limit."""
    annotations = {"gpu-fraction": "0.000000000000000001"}

    assert (Part("main", 1, 1, 1),) == limits(pod(annotations=annotations)).parts


def test_a_ceiling_lowers_what_pods_grant_themselves() -> None:
    """The namespace's ceiling counts, the parts follow it, and the pod's owner is told."""
    found = limits(
        pod(container(**GPU), annotations={names.MEMORY: "6Gi"}),
        namespace={names.MAX_MEMORY: "4Gi"},
    )

    (note,) = found.notes
    assert (4 * GIB, (Part("main", 4 * GIB, 1, 4 * GIB),)) == (found.limit_bytes, found.parts)
    assert (
        'metadata.annotations[gpufence.io/memory]: "6Gi" is above the namespace\'s '
        "gpufence.io/max-memory of 4Gi; "
        "the ceiling counts; ask for less, or have the ceiling raised"
    ) == note.sentence


@pytest.mark.parametrize(
    ("resources", "basis"),
    [
        ({"nvidia.com/gpu": "1"}, "whole cards"),
        ({"nvidia.com/gpu.shared": "1"}, "whole cards"),
        ({"volcano.sh/gpu-number": "1"}, "whole cards"),
        ({"nvidia.com/mig-1g.10gb": "1"}, "MIG instances of 1g.10gb"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value,
)
def test_a_ceiling_lowers_what_only_a_card_implies(resources: dict[str, str], basis: str) -> None:
    """Where implied limits are enforced, no whole card is above the namespace's ceiling."""
    namespace = {names.MAX_MEMORY: "2Gi", names.IMPLIED_LIMITS: "enabled"}
    found = limits(pod(container(**resources)), namespace=namespace)

    (note,) = found.notes
    assert (2 * GIB, 2 * GIB) == (found.limit_bytes, found.parts[0].limit_bytes)
    assert (
        f'resources.limits: "15Gi" ({basis}) is above the namespace\'s gpufence.io/max-memory of '
        "2Gi; write gpufence.io/memory, or have the ceiling raised"
    ) == note.sentence


def test_a_ceiling_lowers_whole_cards_that_claims_give() -> None:
    """What a resource claim gives without an amount is only implied, and held under the ceiling."""
    whole = Device("gpu", "one", WHOLE_CARD)
    plain = pod(container() | {"resources": {"claims": [{"name": "gpu"}]}})
    plain["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "one"}]
    read = read_pod(plain)._replace(devices=(whole,))
    namespace = read_namespace_options({names.MAX_MEMORY: "2Gi", names.IMPLIED_LIMITS: "enabled"})
    found = read_limits(read, PodOptions(), namespace, CandidateCard(Units(), T4_BYTES))

    assert isinstance(found, Limits)
    assert 2 * GIB == found.limit_bytes


@pytest.mark.parametrize(
    "resources",
    [{"aliyun.com/gpu-mem": "6"}, {"volcano.sh/gpu-memory": "6144"}, {"nvidia.com/gpumem": "6144"}],
    ids=lambda value: next(iter(value)),
)
def test_a_ceiling_leaves_what_a_scheduler_counts(resources: dict[str, str]) -> None:
    """An amount that the cluster has booked for the pod is its own, whatever the ceiling."""
    namespace = {names.MAX_MEMORY: "2Gi", names.IMPLIED_LIMITS: "enabled"}

    assert 6 * GIB == limits(pod(container(**resources)), namespace=namespace).limit_bytes


def test_cards_and_profile_of_the_declaration_are_kept() -> None:
    """The limit holds on each of several cards, and says which MIG profile it is for."""
    found = limits(pod(container(**{"nvidia.com/mig-1g.5gb": "2"})), card_bytes=5 * GIB)

    assert (Part("main", 5 * GIB, 2, 5 * GIB),) == found.parts
    assert "1g.5gb" == found.profile
