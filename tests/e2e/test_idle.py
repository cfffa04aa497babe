"""Optional components on a real node: idle GPUs are released, needs are recorded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufence import names
from tests.e2e.desk import Desk
from tests.e2e.site import OVERLAY, QUICK, RealSite, deployment
from tests.support.browser import Tab
from tests.support.site import AGENT, WEBHOOK
from tools.manifests import own_overlay

pytestmark = pytest.mark.e2e

PARTS = ("idle-release", "need")
WORKER = "worker"
AGENT_QUICK = ("GPUFENCE_IDLE_SECONDS=5", "GPUFENCE_NEED_SECONDS=5")
CONTROLLER_QUICK = (
    "GPUFENCE_IDLE_SECONDS=5",
    "GPUFENCE_RELEASE_LEAST_SECONDS=5",
    "GPUFENCE_RELEASE_NOTICE_SECONDS=5",
    "GPUFENCE_RELEASE_WARM_UP_SECONDS=1",
    "GPUFENCE_RELEASE_PEACE_SECONDS=600",
)


@pytest.fixture(scope="module")
def extended(site: RealSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSite]:
    """The installation with components idle-release and need, in a hurry; afterwards as it was."""
    folder = own_overlay(tmp_path_factory.mktemp("overlay"), PARTS, Path(OVERLAY))
    site.cluster.kubectl("apply", "-k", str(folder))
    try:
        site.system("set", "env", f"daemonset/{AGENT}", *QUICK, *AGENT_QUICK)
        site.system("set", "env", f"deployment/{names.CONTROLLER}", *CONTROLLER_QUICK)
        for part in (
            f"deployment/{WEBHOOK}",
            f"daemonset/{AGENT}",
            f"deployment/{names.CONTROLLER}",
        ):
            site.system("rollout", "status", part, "--timeout=100s")
        yield site
    finally:
        site.cluster.kubectl("delete", "-k", str(folder), "--ignore-not-found", "--timeout=100s")
        site.install()


@pytest.fixture
def idle_team(extended: RealSite) -> Iterator[str]:
    """A fenced namespace in which an idle worker may be released at once."""
    with extended.namespace("evict", **{names.IDLE_AFTER: "10s"}) as name:
        extended.cluster.kubectl("label", "namespace", name, f"{names.IDLE}=release")
        yield name


def replicas(site: RealSite, namespace: str) -> int:
    found = site.get("deployment", WORKER, "--namespace", namespace)
    return int(found["spec"]["replicas"])


def test_an_idle_worker_is_released_and_comes_back(
    extended: RealSite, idle_team: str, tab: Tab
) -> None:
    """An idle worker is announced and scaled to zero, with the reason; `wake` brings it back."""
    extended.apply(deployment(idle_team, WORKER, "hold 1Gi"))
    extended.pod_of(idle_team, WORKER)

    extended.until(lambda: replicas(extended, idle_team) == 0, "the worker was released")
    extended.until(
        lambda: bool(extended.events(idle_team, names.IDLE_RELEASED, "Deployment")),
        "the owner was told",
    )
    announced = extended.events(idle_team, names.IDLE_WARNING, "Deployment")
    desk = Desk(extended, idle_team, tab)
    desk.events()
    desk.describe(f"deploy/{WORKER}")
    desk.ask("idle")
    desk.page()
    explained = desk.explain(f"deploy/{WORKER}")
    desk.ask("wake", f"deploy/{WORKER}")

    assert announced
    assert "kubectl gpufence wake" in explained
    assert 1 == replicas(extended, idle_team)
    extended.pod_of(idle_team, WORKER)


def test_a_busy_worker_is_left_alone(extended: RealSite, idle_team: str) -> None:
    """Beside an idle one that is released a worker that computes stays, and its pod says so."""
    busy = deployment(idle_team, "busy", "hold 1Gi; busy 60%")
    extended.apply(busy, deployment(idle_team, WORKER, "hold 1Gi"))
    before = extended.pod_of(idle_team, "busy")

    extended.until(lambda: replicas(extended, idle_team) == 0, "the idle one was released")

    def said() -> list[str]:
        conditions = extended.pod_of(idle_team, "busy")["status"]["conditions"]
        return [one["status"] for one in conditions if one["type"] == names.GPU_IDLE]

    extended.until(lambda: said() == ["False"], "the pod said that it is busy")
    assert before["metadata"]["uid"] == extended.pod_of(idle_team, "busy")["metadata"]["uid"]


def test_what_a_model_needs_is_written_down(extended: RealSite, team: str) -> None:
    """The agent remembers a worker's memory in its node's ConfigMap, and a profile shows it."""
    extended.apply(deployment(team, WORKER, "hold 1Gi; busy 10%"))

    def shown() -> str:
        return extended.cluster.kubectl(
            "get", "gpumemoryprofiles", "--namespace", team, check=False
        ).stdout

    extended.until(lambda: "1024Mi" in shown(), "the profile had its peak")

    assert f"deployment-{WORKER}" in shown()
    assert "low" in shown()
