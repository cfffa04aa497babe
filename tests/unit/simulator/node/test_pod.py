"""
A pod as the node reads it.
"""

from dataclasses import replace

import pytest

from simulator.node.pod import RestartPolicy, VolumeMount, cgroup_line, read_pod
from tests.unit.simulator.node.builders import container, pod

ID = "ab" * 32
POD = "pod11111111_2222_3333_4444_555555555555"


@pytest.mark.parametrize(
    ("quality", "folders"),
    [
        ("Guaranteed", f"kubepods.slice/kubepods-{POD}.slice"),
        ("Burstable", f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{POD}.slice"),
        ("BestEffort", f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-{POD}.slice"),
    ],
)
def test_the_cgroup_line_is_that_of_a_real_node(quality: str, folders: str) -> None:
    """
    The path has a level for the class of service, but not for Guaranteed.
    """
    line = cgroup_line(replace(pod(), quality=quality), ID)

    assert f"0::/{folders}/cri-containerd-{ID}.scope\n" == line


def test_a_deleted_pod_has_the_grace_of_its_deletion() -> None:
    """
    With a deletion timestamp the pod carries the grace it was deleted with, without it none.
    """
    deleted = pod(deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=7)

    assert (7, None) == (deleted.deletion_grace, pod().deletion_grace)


def test_what_is_missing_has_the_defaults_of_kubernetes() -> None:
    """
    A pod that says next to nothing restarts always, after 30 s of grace, with best effort.
    """
    read = read_pod({"metadata": {}, "spec": {"terminationGracePeriodSeconds": -1}})

    assert (RestartPolicy.ALWAYS, 30, "BestEffort") == (read.restart, read.grace, read.quality)


def test_mounts_are_read() -> None:
    """
    A mount has a volume, a path, and maybe a path in the volume.
    """
    mounts = [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "c"}]
    (main,) = pod(container(volumeMounts=mounts)).containers

    assert (VolumeMount("v", "/a", ""), VolumeMount("v", "/b", "c")) == main.mounts


def test_what_is_not_simulated_is_named() -> None:
    """
    Init containers and `envFrom` are seen, so that the node can refuse the pod.
    """
    both = pod(container(envFrom=[{"configMapRef": {}}]), spec={"initContainers": [container()]})

    assert ("init containers", "envFrom") == both.unsupported
    assert "team-a/trainer" == both.full_name
