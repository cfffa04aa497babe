"""A node whose toolkit lets the driver limit what containers may have of a card."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from gpufence.quantity import MIB
from kube import Client
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, RestartPauses, SimulatedNode
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import CURRENT, LIMITED
from tests.support.agent.node_site import Ground, pod, workload
from tests.support.observing import eventually, wait_until

NAME = "node-limited"


@pytest.fixture(scope="module")
def node(control_plane: ControlPlane) -> Iterator[SimulatedNode]:
    options = NodeOptions(
        kubeconfig=control_plane.node_kubeconfig(NAME),
        admin_kubeconfig=control_plane.kubeconfig(),
        name=NAME,
        cards="T4,T4",
        pauses=RestartPauses(first_seconds=0.3),
        driver=LIMITED,
        toolkit=Toolkit.CURRENT,
    )
    with SimulatedNode(options) as running:
        yield running


@pytest.fixture
def ground(
    control_plane: ControlPlane, namespace: str, node: SimulatedNode, admin: Client
) -> Ground:
    return Ground(control_plane, namespace, node, admin)


def limited(name: str, script: str, mebibytes: str = "3072", **spec: Any) -> dict[str, Any]:
    """Describe a pod of one card with the driver's variables."""
    said = {names.DRIVER_REQUEST: "0", names.DRIVER_LIMIT: mebibytes}
    env = [{"name": key, "value": value} for key, value in said.items()]
    resources = {"limits": {names.GPUSHARE_MEMORY: "3"}}
    return pod(name, workload(script, "--context", "300Mi", env=env, resources=resources), **spec)


def groups(ground: Ground, name: str) -> list[Path]:
    """Find the groups of a pod's containers."""
    found = ground.get(name)
    assert found is not None
    slice_of = found["metadata"]["uid"].replace("-", "_")
    return list(ground.node.cgroup_root.rglob(f"*{slice_of}.slice/cri-containerd-*.scope"))


def status_of(ground: Ground, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (ground.status(name).get("containerStatuses") or [{}])[0]
    return found


def test_a_limited_pod_ends_at_its_limit(ground: Ground) -> None:
    """What passes the limit of its container's group is out of memory; its group goes with it."""
    ground.place(limited("greedy", "hold 2700Mi; hold 2800Mi", restartPolicy="Never"))
    ground.wait_for_phase("greedy", "Failed")

    assert "out of memory" in status_of(ground, "greedy")["state"]["terminated"]["message"]
    assert [] == groups(ground, "greedy")


def test_a_running_container_has_a_group_of_its_own(ground: Ground) -> None:
    """The group that /proc names is there below the node's folder, with the limit on its card."""
    ground.place(limited("modest", "hold 1Gi"))
    ground.wait_for_log("modest", "script done")
    (pid,) = ground.node.pids(ground.namespace, "modest")
    line = (ground.node.proc_root / str(pid) / "cgroup").read_text().strip()
    (group,) = groups(ground, "modest")
    limits = {one.group: (one.hard, one.used) for one in ground.node.state.groups.limits()}

    assert (3072 * MIB, 1324 * MIB) == limits[str(group)]
    assert f"0::/{group.relative_to(ground.node.cgroup_root)}" == line


def test_a_container_that_cannot_be_limited_does_not_start(ground: Ground) -> None:
    """It waits with the hook's words and is tried again; once the driver can, it runs."""
    node = ground.node
    node.change_driver(CURRENT)
    ground.place(limited("stuck", "hold 1Gi"))
    tried = eventually(lambda: status_of(ground, "stuck").get("restartCount", 0) >= 1)
    found = status_of(ground, "stuck")
    node.change_driver(LIMITED)
    ground.wait_for_log("stuck", "script done")

    assert tried
    assert found["state"]["waiting"]["reason"] in {"RunContainerError", "CrashLoopBackOff"}
    assert "StartError" == found["lastState"]["terminated"]["reason"]
    assert "undefined symbol" in found["lastState"]["terminated"]["message"]


def test_an_older_toolkit_starts_it_without_a_limit(ground: Ground) -> None:
    """A toolkit that was rolled back lets pods start, and no limit is there."""
    node = ground.node
    node.toolkit = Toolkit.OLDER
    ground.place(limited("free", "hold 4Gi", "not a number"))
    ground.wait_for_log("free", "script done")
    node.toolkit = Toolkit.CURRENT

    wait_until(lambda: bool(node.pids(ground.namespace, "free")), "no process")
