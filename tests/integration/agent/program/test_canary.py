"""The canary as it is shipped, on a simulated node: what the agent makes of it, and labels."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from gpufence import names
from gpufence.canary import CanaryNote, Proof, read_note
from kube import PatchType, core
from simulator.controlplane import ControlPlane
from simulator.node import RestartPauses
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import CURRENT, LIMITED, find_variant
from simulator.nvml.layout import Memacct
from tests.support.agent.node_site import (
    AgentProcess,
    Ground,
    NodeSite,
    events,
    node_site,
    nvml_processes,
    place,
    pod,
    workload,
)
from tests.support.observing import wait_until
from tests.support.tree import found, pod_spec
from tools.manifests import COMPONENTS

SHIPPED = pod_spec(found("DaemonSet", names.CANARY, COMPONENTS / "driver-limits-canary"))
OURS = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "name": names.CANARY,
    "uid": "11111111-2222-4333-8444-555555555555",
    "controller": True,
}
CANARY = "gpufence-canary-x"
LIMITED_VERSION = find_variant(LIMITED).driver
ENFORCE = "pod-security.kubernetes.io/enforce"
PAUSES = RestartPauses(first_seconds=0.3)
SETTINGS = {"GPUFENCE_DRIVER_SECONDS": "0.4", "GPUFENCE_DRIVER_LABEL": "canary"}


@pytest.fixture(scope="module")
def limited_site(control_plane: ControlPlane) -> Iterator[NodeSite]:
    options = {"driver": LIMITED, "toolkit": Toolkit.CURRENT}
    with node_site(control_plane, cards="2xT4", pauses=PAUSES, **options) as ready:
        yield ready


@pytest.fixture
def site(limited_site: NodeSite) -> Iterator[NodeSite]:
    """The node as a new one, of which nothing is known."""
    limited_site.node.toolkit = Toolkit.CURRENT
    limited_site.node.state.groups.memacct = Memacct.MISC
    yield limited_site
    limited_site.node.change_driver(LIMITED)
    limited_site.clear()
    system(limited_site).delete(CANARY, "--ignore-not-found")
    wait_until(lambda: system(limited_site).get(CANARY) is None, "the canary stays")
    forgotten = {"labels": {names.DRIVER_LIMITS: None}, "annotations": {names.DRIVER_CANARY: None}}
    limited_site.admin.patch(node_of(limited_site), {"metadata": forgotten}, PatchType.MERGE)


@pytest.fixture
def agent(site: NodeSite) -> Iterator[AgentProcess]:
    with site.agent(**SETTINGS) as process:
        yield process


def system(site: NodeSite) -> Ground:
    return Ground(site.plane, site.system, site.node, site.admin)


def node_of(site: NodeSite) -> str:
    return core("nodes", site.node.name)


def canary() -> dict[str, Any]:
    """Return a pod as the DaemonSet makes it; there is no class of runtimes here."""
    spec = {key: item for key, item in SHIPPED.items() if key != "runtimeClassName"}
    made = pod(CANARY, *spec.pop("containers"), **spec)
    made["metadata"] |= {"labels": {"app": names.CANARY}, "ownerReferences": [OURS]}
    return made


def start(site: NodeSite) -> str:
    """Start the canary, and return its container's id."""
    place(system(site), canary())
    system(site).wait_for_start(CANARY, "canary")
    return container_of(site)


def container_of(site: NodeSite) -> str:
    (found,) = system(site).status(CANARY)["containerStatuses"]
    return str(found.get("containerID", "")).rpartition("/")[2]


def start_again(site: NodeSite) -> str:
    """Let the canary's container end, as it does each day, and return the next one's id."""
    before = container_of(site)
    for pid in site.node.pids(site.system, CANARY):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: container_of(site) not in ("", before), "the canary does not start again")
    return container_of(site)


def said(site: NodeSite) -> tuple[str | None, CanaryNote | None]:
    metadata = site.admin.get(node_of(site))["metadata"]
    note = read_note(metadata.get("annotations", {}).get(names.DRIVER_CANARY))
    return metadata.get("labels", {}).get(names.DRIVER_LIMITS), note


def wait_for(site: NodeSite, label: str | None, proof: Proof, why: str = "") -> CanaryNote:
    """Wait until the Node has this label, or none, and says this of its canary."""

    def reached() -> bool:
        seen, note = said(site)
        right = note is not None and note.shown is proof and why in note.why
        return right and seen == label

    wait_until(reached, f"not {label} for {proof}")
    note = said(site)[1]
    assert note is not None
    return note


@pytest.mark.parametrize("memacct", [Memacct.MISC, Memacct.DMEM])
def test_a_capable_node_is_labelled(site: NodeSite, agent: AgentProcess, memacct: Memacct) -> None:
    """By what the shipped container shows, which takes no memory of any card."""
    site.node.state.groups.memacct = memacct
    container = start(site)
    note = wait_for(site, "true", Proof.PASSED)

    assert (LIMITED_VERSION, container) == (note.driver, note.container)
    assert {} == nvml_processes(site.node.state.path)
    assert "" == agent.snapshot().limits_trouble


def test_full_cards_and_another_agent_change_nothing(site: NodeSite, namespace: str) -> None:
    """The canary allocates nothing, so that it passes beside pods that have taken all there is."""
    full = pod("full", workload("hold 14Gi", env=[{"name": names.VISIBLE_DEVICES, "value": "all"}]))
    ground = site.ground(namespace)
    place(ground, full)
    ground.wait_for_log("full", "script done")
    container = start(site)
    for _ in range(2):
        with site.agent(**SETTINGS):
            assert container == wait_for(site, "true", Proof.PASSED).container
            assert start_again(site) == wait_for_container(site)
            container = container_of(site)


def wait_for_container(site: NodeSite) -> str:
    """Wait until the Node speaks of the canary's present container, with the label all the time."""

    def reached() -> bool:
        label, note = said(site)
        assert "true" == label
        return note is not None and note.container == container_of(site)

    wait_until(reached, "the next container is not named")
    return container_of(site)


def test_a_toolkit_without_the_hook_labels_nothing(site: NodeSite, agent: AgentProcess) -> None:
    """Once there is one with it, the next container labels the Node; one without takes it back."""
    del agent
    site.node.toolkit = Toolkit.OLDER
    start(site)
    wait_for(site, None, Proof.FAILED, "NVIDIA's hook did not run")
    site.node.toolkit = Toolkit.CURRENT
    start_again(site)
    wait_for(site, "true", Proof.PASSED)
    site.node.toolkit = Toolkit.LEGACY
    start_again(site)

    wait_for(site, None, Proof.LOST, "NVIDIA's hook did not run")


def test_a_driver_that_is_rolled_back_takes_the_label_with_it(
    site: NodeSite, agent: AgentProcess
) -> None:
    """The Node says so by an Event, and only a container of a driver that can brings it back."""
    start(site)
    wait_for(site, "true", Proof.PASSED)
    site.node.change_driver(CURRENT)
    lost = wait_for(site, None, Proof.LOST, f"has replaced {LIMITED_VERSION}")
    default = Ground(site.plane, "default", site.node, site.admin)
    wait_until(
        lambda: any(
            lost.why in each["message"] for each in events(default, names.LIMIT_UNSUPPORTED)
        ),
        f"no Event: {agent.lines[-5:]}",
    )
    site.node.change_driver(LIMITED)
    container = start_again(site)

    assert container == wait_for(site, "true", Proof.PASSED).container


def test_an_old_driver_keeps_the_canary_from_starting(site: NodeSite, agent: AgentProcess) -> None:
    """NVIDIA's hook fails there as it would for a tenant's pod, and the Node says in what words."""
    del agent
    site.node.change_driver(CURRENT)
    place(system(site), canary())

    wait_for(site, None, Proof.FAILED, "undefined symbol")


def test_a_canary_that_goes_takes_the_label_with_it(site: NodeSite, agent: AgentProcess) -> None:
    """Where the component is gone, nothing proves the next driver or toolkit."""
    del agent
    start(site)
    wait_for(site, "true", Proof.PASSED)
    system(site).delete(CANARY)

    wait_for(site, None, Proof.LOST, "no canary runs here")


def test_a_tenants_canary_labels_nothing(
    site: NodeSite, agent: AgentProcess, namespace: str
) -> None:
    """A pod that is like ours in all but its namespace is not even read back."""
    ground = site.ground(namespace)
    place(ground, canary())
    ground.wait_for_start(CANARY, "canary")
    container = start(site)

    assert container == wait_for(site, "true", Proof.PASSED).container
    system(site).delete(CANARY)
    wait_for(site, None, Proof.LOST, "no canary runs here")
    assert ground.get(CANARY) is not None
    assert "" == agent.snapshot().limits_trouble


def test_cgroups_of_version_1_keep_it_from_starting(control_plane: ControlPlane) -> None:
    """There the hook refuses, and the Node is not labelled."""
    options = {"driver": LIMITED, "toolkit": Toolkit.CURRENT, "cgroup_v2": False}
    with node_site(control_plane, pauses=PAUSES, **options) as site, site.agent(**SETTINGS):
        place(system(site), canary())

        wait_for(site, None, Proof.FAILED, "only supported in cgroup v2")


def test_it_is_let_in_where_pods_are_restricted(control_plane: ControlPlane) -> None:
    """PodSecurity's strictest level takes the shipped pod, though ours is no such namespace."""
    enforced = f"{ENFORCE}=restricted"
    with control_plane.fresh_namespace("strict") as namespace:
        control_plane.kubectl("label", "namespace", namespace, enforced)
        made = json.dumps(canary())
        control_plane.kubectl("create", "-n", namespace, "--dry-run=server", "-f", "-", stdin=made)
