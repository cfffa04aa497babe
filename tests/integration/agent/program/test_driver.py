"""The agent reads back what the simulated driver holds containers to, and says what it finds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import Headroom
from gpufence.fences import Fence
from gpufence.mode import Mode
from gpufence.plan import ContainerPlan, Done, Plan, Setting, write_plan
from gpufence.quantity import GIB, MIB
from kube import PatchType, core
from simulator.controlplane import ControlPlane
from simulator.node import RestartPauses
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import CURRENT, LIMITED
from simulator.nvml.groups import GroupTree
from simulator.nvml.layout import Memacct
from tests.support.agent.node_site import (
    AgentProcess,
    Ground,
    NodeSite,
    events,
    node_site,
    place,
    pod,
    workload,
)
from tests.support.driver import set_limit
from tests.support.observing import wait_until

ASKED = {names.DRIVER_REQUEST: "0", names.DRIVER_LIMIT: "3072"}
LIMIT = 3 * GIB


@pytest.fixture(scope="module")
def limited_site(control_plane: ControlPlane) -> Iterator[NodeSite]:
    options = {"driver": LIMITED, "toolkit": Toolkit.CURRENT}
    pauses = RestartPauses(first_seconds=0.3)
    with node_site(control_plane, cards="2xT4", pauses=pauses, **options) as ready:
        yield ready


@pytest.fixture
def site(limited_site: NodeSite, namespace: str) -> Iterator[NodeSite]:
    """The node as a new one, without pods of other tests."""
    del namespace
    limited_site.node.toolkit = Toolkit.CURRENT
    limited_site.node.state.groups.memacct = Memacct.MISC
    yield limited_site
    limited_site.node.change_driver(LIMITED)
    limited_site.clear()


@pytest.fixture
def ground(site: NodeSite, namespace: str) -> Ground:
    return site.ground(namespace)


@pytest.fixture
def agent(site: NodeSite, ground: Ground) -> Iterator[AgentProcess]:
    del ground
    with site.agent(GPUFENCE_DRIVER_SECONDS="0.4", GPUFENCE_DRIVER_LABEL="remove") as process:
        yield process


def driven(name: str, script: str = "hold 1Gi") -> dict[str, Any]:
    """Describe a pod of 3 GiB that is to be held by the driver, as the webhook leaves it."""
    row = Setting(names.DRIVER_LIMIT, "", "driver", Done.SET, limit_bytes=LIMIT)
    main = ContainerPlan(LIMIT, 1, Headroom.FACTOR, None, (row,))
    plan = write_plan(Plan(Mode.EVICT, "gpushare", LIMIT, {"main": main}))
    env = [{"name": key, "value": value} for key, value in ASKED.items()]
    resources = {"limits": {names.GPUSHARE_MEMORY: "3"}}
    said = {names.INJECTED: "yes", names.GPUSHARE_CARD_INDEX: "0", names.PLAN: plan}
    container = workload(script, "--context", "300Mi", env=env, resources=resources)
    return pod(name, container, annotations=said)


def start(ground: Ground, name: str) -> Path:
    """Start a pod, and return the folder of its container's cgroup."""
    place(ground, driven(name))
    ground.wait_for_log(name, "script done")
    uid = (ground.get(name) or {})["metadata"]["uid"].replace("-", "_")
    (folder,) = ground.node.cgroup_root.rglob(f"*{uid}.slice/cri-containerd-*.scope")
    return folder


def wait_for_fence(agent: AgentProcess, name: str, fence: Fence) -> None:
    def fences() -> set[str]:
        rows = [row for row in agent.snapshot().pods if row.name == name]
        return {use.fence for row in rows for use in row.uses}

    wait_until(lambda: fences() == {fence}, f"{name} is not {fence}: {agent.snapshot()}")


def wait_for_event(ground: Ground, name: str, words: str) -> None:
    """Wait until a pod says why it is not held."""

    def said() -> bool:
        found = events(ground, names.LIMIT_ABSENT)
        return any(
            words in item["message"] for item in found if item["involvedObject"]["name"] == name
        )

    wait_until(said, f"{name} does not say {words}: {events(ground, names.LIMIT_ABSENT)}")


def node_says(site: NodeSite) -> list[str]:
    found = site.admin.get(core("namespaces", "default", "events"))["items"]
    return [
        item["message"]
        for item in found
        if item["reason"] == names.LIMIT_UNSUPPORTED
        and item["involvedObject"]["name"] == site.node.name
    ]


@pytest.mark.parametrize("memacct", [Memacct.MISC, Memacct.DMEM])
def test_a_pod_that_the_driver_holds_says_so(
    ground: Ground, agent: AgentProcess, memacct: Memacct
) -> None:
    """However the driver counts, snapshot and metrics name it; nothing is said by Events."""
    ground.node.state.groups.memacct = memacct
    start(ground, "held")
    wait_for_fence(agent, "held", Fence.DRIVER)
    held = [line for line in agent.metrics() if line.startswith("gpufence_pod_fence")]

    assert any('pod="held"' in line and 'fence="driver"' in line for line in held)
    assert 1.0 == agent.metrics()['gpufence_driver_limits{state="held"}']
    assert [] == events(ground, names.LIMIT_ABSENT)
    assert "" == agent.snapshot().limits_trouble


def test_another_limit_is_found_under_a_running_pod(ground: Ground, agent: AgentProcess) -> None:
    """A limit that somebody changes on the node takes the fence away, and the pod says so."""
    folder = start(ground, "changed")
    wait_for_fence(agent, "changed", Fence.DRIVER)
    set_limit(ground.node.state.path, folder, 2048 * MIB)
    wait_for_fence(agent, "changed", Fence.AGENT)

    wait_for_event(ground, "changed", "a smaller one, 2048 MiB")


def test_a_stale_limit_of_an_earlier_cgroup_is_found(
    site: NodeSite, ground: Ground, agent: AgentProcess
) -> None:
    """A container that inherits the entry of one that has gone has another limit than its own."""
    old = GroupTree(site.node.cgroup_root).add("kubepods.slice/old")
    set_limit(site.node.state.path, old, 5 * GIB)
    site.node.toolkit = Toolkit.OLDER
    new = start(ground, "stale")
    site.node.state.groups.hand_on(old, new)

    wait_for_event(ground, "stale", "a larger one, 5120 MiB")
    wait_for_fence(agent, "stale", Fence.AGENT)


def test_a_driver_that_is_rolled_back_is_found_and_the_label_taken_back(
    site: NodeSite, ground: Ground, agent: AgentProcess
) -> None:
    """Pods that run say that the driver cannot, one that starts cannot, and the Node says both."""
    node = core("nodes", site.node.name)
    start(ground, "before")
    wait_for_fence(agent, "before", Fence.DRIVER)
    labels = {"metadata": {"labels": {names.DRIVER_LIMITS: "true"}}}
    site.admin.patch(node, labels, PatchType.MERGE)
    site.node.change_driver(CURRENT)
    place(ground, driven("after"))

    wait_for_event(ground, "before", "they begin with r615")
    lacks = "r615", "undefined symbol"  # whichever comes first
    wait_until(lambda: any(word in text for word in lacks for text in node_says(site)), "no Event")
    wait_until(
        lambda: names.DRIVER_LIMITS not in site.admin.get(node)["metadata"].get("labels", {}),
        f"the label stays: {agent.lines[-5:]}",
    )
    wait_until(lambda: "undefined symbol" in agent.snapshot().limits_trouble, "no trouble")
    assert 1.0 == agent.metrics()["gpufence_driver_limits_unsupported"]
