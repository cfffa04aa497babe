"""
A pod as the node reads it.
"""

from __future__ import annotations

from simulator.node.pod import Kind, Mount, Restart, read_pod
from tests.unit.simulator.node.builders import container, pod, pod_object


def test_init_containers_come_first_in_their_order() -> None:
    """
    Containers are listed as they start: init containers, sidecars among them, then the others.
    """
    found = pod(
        container("a"), inits=(container("i"), container("s", restartPolicy="Always"))
    ).containers

    assert [("i", Kind.INIT), ("s", Kind.SIDECAR), ("a", Kind.MAIN)] == [
        (one.name, one.kind) for one in found
    ]


def test_init_and_main_containers_are_told_apart() -> None:
    """
    The two groups can be had each for itself.
    """
    found = pod(container("a"), inits=(container("i"),))

    assert (["i"], ["a"]) == ([one.name for one in found.inits], [one.name for one in found.mains])


def test_an_init_container_of_a_pod_that_always_restarts_is_tried_until_it_succeeds() -> None:
    """
    The pod's Always means OnFailure for its init containers.
    """
    found = pod(container(), inits=(container("i"),)).inits[0]

    assert Restart.ON_FAILURE is found.restart


def test_a_container_may_have_a_restart_policy_of_its_own() -> None:
    """
    A container's own restart policy stands above the pod's.
    """
    assert Restart.NEVER is pod(container(restartPolicy="Never")).mains[0].restart


def test_a_deleted_pod_has_the_grace_of_its_deletion() -> None:
    """
    With a deletion timestamp the pod carries the grace it was deleted with.
    """
    found = pod(deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=7)

    assert 7 == found.deletion_grace


def test_a_living_pod_has_none() -> None:
    """
    Without a deletion timestamp there is no grace of a deletion.
    """
    assert None is pod().deletion_grace


def test_what_is_missing_has_the_defaults_of_kubernetes() -> None:
    """
    A pod that says next to nothing restarts always, after 30 s of grace, with best effort.
    """
    found = read_pod({"metadata": {}, "spec": {"terminationGracePeriodSeconds": -1}})

    assert (Restart.ALWAYS, 30, "BestEffort") == (found.restart, found.grace, found.quality)


def test_mounts_are_read() -> None:
    """
    A mount has a volume, a path, and maybe a path in the volume.
    """
    mounts = [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "c"}]
    found = pod(container(volumeMounts=mounts)).mains[0]

    assert (Mount("v", "/a", ""), Mount("v", "/b", "c")) == found.mounts


def test_mirror_pods_are_told_apart() -> None:
    """
    A pod that only shows a static one is recognised by its annotation.
    """
    shown = pod(annotations={"kubernetes.io/config.mirror": "0123"})

    assert (True, False) == (shown.is_mirror, pod().is_mirror)


def test_a_pod_is_known_by_namespace_and_name() -> None:
    """
    The full name holds namespace and name.
    """
    assert "team-a/trainer" == read_pod(pod_object()).full_name
