"""Pods that fill what etcd takes of one object, so that nothing can be written into them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kube import Client, PatchType, core
from tests.support.agent.node_site import (
    OVER,
    WITHIN,
    Fenced,
    NodeSite,
    fenced_pod,
    is_gone,
    place,
    wait_until_gone,
)
from tests.support.observing import eventually
from tests.support.swollen import swell

ROOM_TO_BE_BOUND = 300
"""Less than a status takes, more than a binding does."""


@contextmanager
def swollen(ground: Fenced, room: int) -> Iterator[None]:
    """Run a pod over its limit, and label it until so many bytes are left."""
    place(ground, fenced_pod("good", WITHIN), fenced_pod("greedy", OVER))
    ground.wait_for_start("greedy", "main")
    path = core("namespaces", ground.namespace, "pods", "greedy")
    swell(ground.admin, path, room)
    try:
        yield
    finally:
        shrink(ground.admin, path, ground.get("greedy") is not None)


def shrink(client: Client, path: str, there: object) -> None:
    """Take all labels away, so that the pod can be deleted."""
    if there:
        body = [{"op": "remove", "path": "/metadata/labels"}]
        client.patch(path, body, PatchType.JSON)


@pytest.mark.parametrize("room", [150, 0], ids=["no condition fits", "nothing fits"])
def test_a_pod_that_labels_have_made_too_large_goes(
    site: NodeSite, namespace: str, room: int
) -> None:
    """A pod over its limit goes, however little can be written into it; its neighbour stays."""
    ground = site.ground(namespace)
    with swollen(ground, room), site.agent() as agent:
        wait_until_gone(ground, "greedy", agent)

    assert not is_gone(ground, "good")


@pytest.mark.soak
def test_a_pod_without_a_status_goes(site: NodeSite, namespace: str) -> None:
    """A pod so large that no status was ever written into it owns its memory, and goes for it."""
    ground = site.ground(namespace)
    ground.create(fenced_pod("greedy", OVER))
    path = core("namespaces", namespace, "pods", "greedy")
    swell(site.admin, path, ROOM_TO_BE_BOUND)
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "greedy"},
        "target": {"kind": "Node", "name": site.node.name},
    }
    site.admin.post(f"{path}/binding", body)
    assert eventually(lambda: bool(site.node.pids(namespace, "greedy")))
    assert not ground.status("greedy").get("containerStatuses")
    try:
        with site.agent() as agent:
            wait_until_gone(ground, "greedy", agent)
    finally:
        shrink(site.admin, path, ground.get("greedy") is not None)
