"""What Pod Security's strictest level says of our pods, asked of a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import WORKLOADS, rendered
from tests.support.tree import pod_spec
from tools.manifests import own_overlay

WHERE = "restricted-pods"
LEVEL = "pod-security.kubernetes.io/enforce=restricted"
AGENT = "DaemonSet gpufence-agent"
HOST = "host namespaces (hostPID=true)"


@pytest.fixture(scope="module")
def namespace(plane: ControlPlane) -> Iterator[str]:
    plane.kubectl("create", "namespace", WHERE)
    plane.kubectl("label", "namespace", WHERE, LEVEL)
    plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", WHERE, "--timeout=30s")
    yield WHERE
    plane.kubectl("delete", "namespace", WHERE, "--wait=false")


def refusals(plane: ControlPlane, folder: Path, *parts: str) -> dict[str, str]:
    """Return for each workload what its pod violates, without its account and its classes."""
    found = {}
    for (kind, name), item in rendered(plane, own_overlay(folder, parts)).items():
        if kind in WORKLOADS:
            spec = {**pod_spec(item), "serviceAccountName": "default"}
            left_out = ("priorityClassName", "runtimeClassName")
            spec = {key: value for key, value in spec.items() if key not in left_out}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked"}, "spec": spec}
            command = ("create", "-n", WHERE, "--dry-run=server", "-f", "-")
            done = plane.kubectl(*command, stdin=yaml.safe_dump(pod), check=False)
            words = done.stderr.strip().partition(': violates PodSecurity "restricted:latest": ')
            found[f"{kind} {name}"] = words[2] or words[0]
    return found


def test_every_pod_but_the_agents_is_restricted(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """The agent violates one rule, hostPID, and no other program any."""
    found = refusals(plane, tmp_path, "idle-release", "need")

    assert namespace
    assert {"Deployment gpufence-controller", "Deployment gpufence-webhook", AGENT} < found.keys()
    assert {AGENT: HOST} == {name: words for name, words in found.items() if words}


@pytest.mark.parametrize(
    ("component", "more"),
    [
        ("driver-mount", 'restricted volume types (volume "all-cards"'),
        ("driver-privileged", 'privileged (container "agent" must not set'),
        (
            "openshift",
            'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t")',
        ),
        ("last-resort-kill", "runAsUser=0 (pod must not set runAsUser=0)"),
    ],
)
def test_what_a_component_violates_besides_is_said(
    plane: ControlPlane, namespace: str, tmp_path: Path, component: str, more: str
) -> None:
    """The page about platforms has for each what an exception has to allow."""
    assert namespace
    assert more in refusals(plane, tmp_path, component)[AGENT]
