"""One pod, one dialect."""

import pytest

from gpufence.dialects import GPU_RESOURCES, Amount, Undeclared
from gpufence.quantity import GIB
from tests.support.builders import container, gpushare, pod
from tests.unit.gpufence.dialects.declared import said, unreadable


def test_a_pod_without_gpu_is_undeclared() -> None:
    """No known resource and no known annotation is no declaration."""
    assert Undeclared("no container asks for GPU memory in a way gpufence knows") == said(pod())


def test_resource_claims_are_named_as_unsupported() -> None:
    """A pod that gets its devices by DRA is told why gpufence says nothing about it."""
    found = said(pod(resourceClaims=[{"name": "gpu"}]))

    assert isinstance(found, Undeclared)
    assert "resource claims (DRA)" in found.reason


def test_two_systems_in_one_pod_are_unreadable() -> None:
    """Each scheduler keeps its own books, so no limit fits both; both are named."""
    found = unreadable(pod(gpushare("a"), container("b", **{"nvidia.com/gpu": "1"})))

    assert found.own_words
    assert (
        'resources.limits: "gpushare (units of 1Gi), nvidia (whole cards)" '
        "are two ways to declare GPU memory in one pod; keep the one whose scheduler runs the pod"
    ) == found.problem.sentence


def test_two_ways_of_one_system_are_told_apart() -> None:
    """Volcano's shares and whole cards are named by what they count."""
    limits = {"volcano.sh/gpu-memory": "1024", "volcano.sh/gpu-number": "1"}
    found = unreadable(pod(container(**limits)))

    assert "volcano (units of 1 MiB), volcano (whole cards)" == found.problem.value


@pytest.mark.parametrize(
    "resource", ["aliyun.com/gpu-mem", "volcano.sh/gpu-memory", "nvidia.com/gpu"]
)
@pytest.mark.parametrize("value", ["x", "1.5", "-1"])
def test_a_count_that_cannot_be_read_is_unreadable(resource: str, value: str) -> None:
    """A malformed number is a problem with its field, never a zero."""
    found = unreadable(pod(container(**{resource: value})))

    assert f"spec.containers[0].resources.limits[{resource}]" == found.problem.field
    assert value == found.problem.value


@pytest.mark.parametrize("resource", [*GPU_RESOURCES, "nvidia.com/mig-1g.5gb"])
def test_zero_asks_for_nothing(resource: str) -> None:
    """A limit of zero declares nothing, as it reserves nothing."""
    assert isinstance(said(pod(container(**{resource: "0"}))), Undeclared)


def test_a_zero_beside_a_real_request_is_no_second_dialect() -> None:
    """A chart that writes zero for the resources it does not use is read by the one it does."""
    found = said(pod(container(**{"aliyun.com/gpu-mem": "3", "nvidia.com/gpu": "0"})))

    assert not isinstance(found, Undeclared)


@pytest.mark.parametrize(
    ("amount", "card", "size"),
    [
        (Amount(GIB), None, GIB),
        (Amount(GIB), 4 * GIB, GIB),
        (Amount(share=(1, 3)), 10, 3),
        (Amount(share=(1, 4)), None, None),
    ],
)
def test_a_share_needs_a_card(amount: Amount, card: int | None, size: int | None) -> None:
    """Bytes are bytes anywhere; a share is rounded down on a known card and unknown without one."""
    assert size == amount.on_card(card)
