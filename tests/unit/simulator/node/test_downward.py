"""
What the downward API tells.
"""

from __future__ import annotations

import pytest

from simulator.node.downward import field_value, resource_value
from simulator.node.errors import NotYetError
from tests.unit.simulator.node.builders import NODE, UID, container, pod

POD = pod(annotations={"env.gpufence.io/0.XLA": "0.25", "b": 'say "hi"\t\\\u0001\u200b\U000e0001é'})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "trainer"),
        ("metadata.namespace", "team-a"),
        ("metadata.uid", UID),
        ("metadata.labels['app']", "training"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['env.gpufence.io/0.XLA']", "0.25"),
        ("metadata.annotations['missing']", ""),
        ("metadata.labels", 'app="training"'),
        (
            "metadata.annotations",
            'b="say \\"hi\\"\\t\\\\\\x01\\u200b\\U000e0001é"\nenv.gpufence.io/0.XLA="0.25"',
        ),
        ("spec.nodeName", "node-a"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", "10.1.2.3"),
        ("status.podIPs", "10.1.2.3"),
        ("status.hostIP", "10.1.2.3"),
        ("status.hostIPs", "10.1.2.3"),
    ],
)
def test_fields_have_their_values(path: str, expected: str) -> None:
    """
    Every field that Kubernetes offers has its value, a missing key an empty one.
    """
    assert expected == field_value(POD, NODE, path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("status.phase", "unsupported fieldPath: status.phase"),
        ("metadata.annotations['open", "unsupported fieldPath: metadata.annotations['open"),
        ("['key']", "unsupported fieldPath: ['key']"),
        ("metadata.name['key']", 'fieldPath "metadata.name" does not support subscript'),
    ],
)
def test_other_fields_are_errors(path: str, message: str) -> None:
    """
    A field that is not offered keeps the container waiting, with the kubelet's words.
    """
    with pytest.raises(NotYetError) as caught:
        field_value(POD, NODE, path)

    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("limits.memory", "0", "1610612736"),
        ("limits.memory", "1Mi", "1536"),
        ("limits.memory", "1Gi", "2"),
        ("requests.memory", "1Mi", "1000"),
        ("limits.cpu", "0", "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "1", "0"),
        ("limits.ephemeral-storage", "1Mi", "1024"),
    ],
)
def test_resources_are_rounded_up(resource: str, divisor: str, expected: str) -> None:
    """
    Amounts are counted in units of the divisor, rounded up; the node stands in for a missing limit.
    """
    resources = {
        "limits": {"memory": "1536Mi", "cpu": "1500m"},
        "requests": {"memory": "1000Mi"},
    }
    (main,) = pod(container(resources=resources)).containers

    assert expected == resource_value(main, NODE, resource, divisor)


@pytest.mark.parametrize(
    "resource", ["limits.aliyun.com/gpu-mem", "status.memory", "limits", "limits.hugepages-2Mi"]
)
def test_other_resources_are_errors(resource: str) -> None:
    """
    Extended resources cannot be told by the downward API, as in Kubernetes.
    """
    (main,) = POD.containers
    with pytest.raises(NotYetError) as caught:
        resource_value(main, NODE, resource, "1")

    assert f"unsupported container resource : {resource}" == str(caught.value)
