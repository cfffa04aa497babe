"""
Components that are built together, two by two: each was thought of alone.

Only those that say with which rights a pod runs can make it mightier, so one of two is such.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import WORKLOADS, Objects, rendered
from tests.support.manifests import COMPONENTS, own_overlay, pod_spec

NAMES = sorted(path.name for path in COMPONENTS.iterdir())
RIGHTS = re.compile("hostPID|privileged|runAs|securityContext")
KILLS = "last-resort-kill"
MIGHTY = [
    name
    for name in NAMES
    if any(RIGHTS.search(path.read_text("utf-8")) for path in (COMPONENTS / name).glob("*.yaml"))
]


def owns_the_node(spec: dict[str, Any]) -> bool:
    """Return whether a pod is privileged, root and among the host's processes, all at once."""
    of_pod = spec.get("securityContext", {})
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    contexts = [of_pod | item.get("securityContext", {}) for item in containers]
    return spec.get("hostPID", False) and any(
        each.get("privileged") and each.get("runAsUser", 0) == 0 for each in contexts
    )


def built(plane: ControlPlane, folder: Path, *components: str) -> Objects:
    here = folder / "-".join(components)
    here.mkdir()
    return rendered(plane, own_overlay(here, components))


@pytest.mark.parametrize(
    "mighty",
    [pytest.param(name, marks=() if name == KILLS else pytest.mark.nightly) for name in MIGHTY],
)
def test_no_pair_makes_a_pod_that_owns_its_node(
    control_plane: ControlPlane, tmp_path: Path, mighty: str
) -> None:
    """In either order two components build without a privileged root among the host's processes."""
    pairs = {pair for name in NAMES for pair in ((mighty, name), (name, mighty))}
    owning = []
    for pair in sorted(pairs):
        items = built(control_plane, tmp_path, *dict.fromkeys(pair))
        workloads = [item for (kind, _), item in items.items() if kind in WORKLOADS]
        owning += [pair for item in workloads if owns_the_node(pod_spec(item))]

    assert [] == owning


def test_alone_it_is_root_who_kills(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The component does what it is for where nothing else makes the agent mighty."""
    items = built(control_plane, tmp_path, KILLS)
    spec = pod_spec(items["DaemonSet", "gpufence-agent"])

    assert (0, False) == (
        spec["securityContext"]["runAsUser"],
        spec["securityContext"]["runAsNonRoot"],
    )
