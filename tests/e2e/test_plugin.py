"""What a person sees of it all by `kubectl gpufence`."""

import pytest

from tests.e2e.site import RealSite, deployment

pytestmark = pytest.mark.e2e


def test_declared_told_and_measured_side_by_side(site: RealSite, team: str) -> None:
    """One line tells a pod's limit, what its framework was told, and what it really holds."""
    site.apply(deployment(team, "trainer", "hold 1Gi"))
    name = site.pod_of(team, "trainer")["metadata"]["name"]

    def shown() -> list[str]:
        lines = site.answer("top", "--namespace", team).splitlines()
        return next((line.split() for line in lines if name in line), [])

    site.until(lambda: "1024Mi" in shown(), "the pod's use was measured")

    _, node, card, limit, told, used, *_, verdict = shown()
    assert ("gpu-1", "0", "3072Mi", "2150Mi", "1024Mi") == (node, card, limit, told, used)
    assert "within" == verdict


def test_a_pod_is_explained(site: RealSite, team: str) -> None:
    """The sums behind a pod's values can be read."""
    site.apply(deployment(team, "trainer"))
    name = site.pod_of(team, "trainer")["metadata"]["name"]

    explained = site.answer("explain", "--namespace", team, name)

    assert "asks for 3 aliyun.com/gpu-mem" in explained
    assert "PYTORCH_ALLOC_CONF" in explained
    assert "per_process_memory_fraction:0.140000" in explained


def test_a_healthy_installation_has_nothing_wrong(site: RealSite) -> None:
    """The check-up of everything finds no fault."""
    verdict = site.answer("doctor").splitlines()[-1]

    assert verdict == "all is well" or verdict.startswith("nothing is wrong")
