"""What is read of a pod, and who runs together in it."""

import tracemalloc

import pytest

from gpufence.errors import InvalidError
from gpufence.pods import (
    ContainerKind,
    PodClaim,
    phase_sums,
    read_claims,
    read_pod,
    smallest_of_phases,
)
from gpufence.quantity import MIB
from gpufence.shape import Object
from tests.support.builders import container, pod, sidecar


def test_a_container_knows_its_kind_and_place() -> None:
    """Errors can name where in the pod a container stands."""
    said = read_pod(pod(container("main"), init=[sidecar("proxy"), container("fetch")]))

    assert [
        ("proxy", ContainerKind.SIDECAR, "spec.initContainers[0]"),
        ("fetch", ContainerKind.INIT, "spec.initContainers[1]"),
        ("main", ContainerKind.REGULAR, "spec.containers[0]"),
    ] == [(item.name, item.kind, item.field) for item in said.containers]


def test_a_container_s_gpu_resources_are_those_known_by_name_or_by_its_beginning() -> None:
    """What tells about a node's cards alone declares nothing about a pod."""
    limits = {"cpu": "1", "aliyun.com/gpu-mem": "3", "aliyun.com/gpu-count": "1"}
    said = read_pod(pod(container(**limits, **{"nvidia.com/mig-1g.5gb": "0"})))

    assert {"aliyun.com/gpu-mem": "3", "nvidia.com/mig-1g.5gb": "0"} == said.containers[0].gpu


def test_the_fields_that_choose_a_node_are_read() -> None:
    """Node name, selector, node affinity and claims of devices are read as they stand."""
    said = read_pod(
        pod(
            nodeName="node-1",
            nodeSelector={"zone": "a"},
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
            resourceClaims=[{"name": "gpu"}],
        )
    )

    assert "node-1" == said.node_name
    assert {"zone": "a"} == said.node_selector
    assert {"requiredDuringSchedulingIgnoredDuringExecution": {}} == said.affinity
    assert (PodClaim("gpu", ""),) == said.claims


def test_an_empty_object_is_an_empty_pod() -> None:
    """Every field may be absent."""
    said = read_pod({})

    assert ((), "", {}, ()) == (
        said.containers,
        said.node_name,
        said.annotations,
        said.claims,
    )


def test_regular_containers_run_with_all_sidecars() -> None:
    """The pod's life is every regular container beside every sidecar."""
    said = read_pod(pod(container("a"), container("b"), init=[sidecar("proxy")]))

    assert [111] == phase_sums(said, {"a": 1, "b": 10, "proxy": 100})


def test_an_init_container_runs_with_the_sidecars_before_it() -> None:
    """A sidecar that is started later does not count beside an earlier init container."""
    said = read_pod(
        pod(container("main"), init=[container("one"), sidecar("proxy"), container("two")])
    )

    assert [1, 110, 1100] == phase_sums(said, {"one": 1, "two": 10, "proxy": 100, "main": 1000})


def test_the_smallest_of_a_container_s_phases_is_found() -> None:
    """A sidecar runs in every phase from its start on, an init container in one."""
    early = [sidecar("first"), container("one"), sidecar("proxy"), container("two")]
    said = read_pod(pod(container("main"), init=early))

    assert {"first": 3, "one": 3, "proxy": 5, "two": 5, "main": 7} == smallest_of_phases(
        said, [3, 5, 7]
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


def test_the_claims_of_a_pod_can_be_read_alone() -> None:
    """Those who ask the API server for them need nothing else of the pod."""
    raw = pod(container(), resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])

    assert (PodClaim("gpu", "c"),) == read_claims(raw)
    assert () == read_claims(pod(container()))
