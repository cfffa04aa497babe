"""
The driver's canary on a real node: its DaemonSet, its variables, and what the agent makes of it.

The machine's control groups may be of version 1, and its runtime is no NVIDIA's: the groups are
simulated, and the node simulator's hook sets on them what the container's variables say.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufence import names
from simulator.cluster.setup import NODE, SIMULATED, STATE
from simulator.node import hook
from simulator.node.toolkit import wanted_limits
from simulator.nvml.build import CURRENT, LIBRARY, LIMITED, find_variant, library_path
from simulator.nvml.groups import ROOT, GroupTree
from simulator.nvml.state import State
from tests.e2e.site import OVERLAY, SYSTEM, Json, RealSite
from tests.support.site import AGENT
from tools.manifests import own_overlay

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

GROUPS = "groups"
DRIVER = "nvidia.com/cuda.driver-version.major"
RUNTIME = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "runc",
}
# The driver is asked by the paths of the node, so the agent sees the cards' folder at its own.
AGENT_SEES = [
    {
        "op": "add",
        "path": "/spec/template/spec/containers/0/volumeMounts/-",
        "value": {"name": "simulator", "mountPath": str(SIMULATED)},
    },
    *(
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": value}
        for value in (
            {"name": "GPUFENCE_CGROUP_ROOT", "value": str(SIMULATED / GROUPS)},
            {"name": "GPUFENCE_DRIVER_SECONDS", "value": "1"},
        )
    ),
]


@pytest.fixture
def capable(site: RealSite, tmp_path: Path) -> Iterator[RealSite]:
    """The installation with the component, on a node whose driver knows limits; then as before."""
    folder = own_overlay(tmp_path, ("driver-limits-canary",), Path(OVERLAY))
    patch = {"target": {"kind": "DaemonSet", "name": AGENT}, "patch": json.dumps(AGENT_SEES)}
    with (folder / "kustomization.yaml").open("a") as file:
        file.write(f"patches: {json.dumps([patch])}\n")
    groups(site)
    change_driver(site, LIMITED)
    kubectl = site.cluster.kubectl
    kubectl("apply", "-f", "-", stdin=json.dumps(RUNTIME))
    kubectl("label", "node", NODE, f"{DRIVER}={find_variant(LIMITED).driver.partition('.')[0]}")
    try:
        kubectl("apply", "-k", str(folder))
        site.settle()
        yield site
    finally:
        kubectl("delete", "-k", str(folder), "--ignore-not-found", "--timeout=100s")
        kubectl("delete", "runtimeclass", "nvidia")
        kubectl("label", "node", NODE, f"{DRIVER}-", f"{names.DRIVER_LIMITS}-")
        change_driver(site, CURRENT)
        site.install()


def groups(site: RealSite) -> GroupTree:
    return GroupTree(site.cluster.state.parent / GROUPS)


def change_driver(site: RealSite, variant: str) -> None:
    library = site.cluster.state.parent / LIBRARY
    aside = library.with_suffix(".new")
    shutil.copy(library_path(variant), aside)
    aside.replace(library)
    State.open(site.cluster.state).upgrade_driver(find_variant(variant).driver)


def hold(site: RealSite, pod: Json, variables: dict[str, str]) -> None:
    """Set on a container's group what the toolkit's hook sets before the container starts."""
    (container,) = pod["status"]["containerStatuses"]
    identity = container["containerID"].rpartition("/")[2]
    path = f"kubepods/pod{pod['metadata']['uid']}/{identity}"
    groups(site).add(path)
    wanted = wanted_limits(f"{name}={value}" for name, value in variables.items())
    assert wanted is not None
    command = (sys.executable, "-I", "-S", str(hook.__file__), str(SIMULATED / LIBRARY))
    done = site.cluster.inside(
        *("env", f"{names.SIMULATOR_STATE}={STATE}", f"{ROOT}=1", *command),
        *(str(SIMULATED / GROUPS / path), str(wanted.soft), str(wanted.hard)),
        *(card.uuid for card in State.open(site.cluster.state).cards),
    )
    assert 0 == done.returncode, done.stderr


def label(site: RealSite) -> str | None:
    found: str | None = site.get("node", NODE)["metadata"]["labels"].get(names.DRIVER_LIMITS)
    return found


def test_a_canary_labels_its_node_for_as_long_as_it_is_held(capable: RealSite) -> None:
    """The variables arrive, the limit is read back, the label is set, and goes with the canary."""
    canary = capable.pod_of(SYSTEM[1], names.CANARY)
    variables = capable.environment(canary)
    before = label(capable)

    hold(capable, canary, variables)
    capable.until(lambda: label(capable) == "true", "the node was labelled")
    said = capable.answer("doctor")
    capable.system("delete", "daemonset", names.CANARY, "--timeout=60s")
    capable.until(lambda: label(capable) is None, "the label was taken back")
    capable.until(
        lambda: bool(capable.events("default", names.LIMIT_UNSUPPORTED, "Node")), "it was said why"
    )

    assert None is before
    assert ("0", "64") == (variables[names.DRIVER_REQUEST], variables[names.DRIVER_LIMIT])
    assert "canary" in said
