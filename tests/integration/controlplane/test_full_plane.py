"""A control plane with scheduler and controller manager: what they add."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from simulator.controlplane import ControlPlane
from tests.support.observing import eventually


@contextmanager
def ready_node(plane: ControlPlane, name: str) -> Iterator[None]:
    """
    Have a node that says it is ready and has GPU memory to give; it must go again, or pods of other
    tests would be bound to it and never run.
    """
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    plane.kubectl("apply", "-f-", stdin=json.dumps(document))
    amounts = {"aliyun.com/gpu-mem": "15", "cpu": "4", "memory": "8Gi", "pods": "20"}
    status = {
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
    }
    patch = json.dumps({"status": status})
    plane.kubectl("patch", "node", name, "--subresource=status", "--patch", patch)
    try:
        yield
    finally:
        plane.kubectl("delete", "node", name)


def test_deployment_becomes_a_bound_pod(
    full_control_plane: ControlPlane, full_namespace: str
) -> None:
    """
    A Deployment that asks for an extended resource ends as a pod bound to the node that has it.
    """
    plane = full_control_plane
    limits = {"aliyun.com/gpu-mem": "3"}
    container = {"name": "main", "image": "none.invalid/none", "resources": {"limits": limits}}
    labels = {"app": "trainer"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "trainer"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    query = ("-n", full_namespace, "get", "pods", "-o=jsonpath={.items[*].spec.nodeName}")
    with ready_node(plane, "gpu-node"):
        plane.kubectl("-n", full_namespace, "apply", "-f-", stdin=json.dumps(deployment))
        bound = eventually(lambda: "gpu-node" == plane.kubectl(*query).stdout)

    assert bound


def test_pod_has_its_service_account(full_control_plane: ControlPlane, full_namespace: str) -> None:
    """
    With a controller manager pods get a ServiceAccount, and its token volume, as in any cluster.
    """
    plane = full_control_plane
    plane.kubectl("-n", full_namespace, "run", "pod", "--image=none.invalid/none")
    pod = json.loads(plane.kubectl("-n", full_namespace, "get", "pod", "pod", "-ojson").stdout)

    assert "default" == pod["spec"]["serviceAccountName"]
    assert pod["spec"]["volumes"][0]["name"].startswith("kube-api-access-")
