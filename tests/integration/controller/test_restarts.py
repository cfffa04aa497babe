"""
Agents and controller that end and begin together, and nodes that vanish, on a real API server.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agent.concerns.need.concern import NeedStore
from agent.concerns.need.ledger import both
from agent.concerns.need.model import StoredNeed
from gpufence.need import NeedDay, NeedKey, NodeNeed, OwnerNeed, need_configmap
from gpufence.quantity import GIB
from gpufence.times import write_moment
from kube import core
from simulator.controlplane import ControlPlane
from tests.integration.agent.cluster.site import ClusterSite, wait_for
from tests.support.builders import T4
from tests.support.controller.site import ControllerSite
from tests.support.observing import wait_until

DAY = 86_400
WORKER = "deployment-worker"


@pytest.fixture
def agents(
    shared_site: ControllerSite, full_control_plane: ControlPlane, tmp_path: Path
) -> Iterator[ClusterSite]:
    """Agents' rights beside the controller's, and what makes profiles."""
    shared_site.install_profiles()
    with ClusterSite(full_control_plane, tmp_path, shared_site.system) as made:
        made.install()
        yield made
        made.drop(core("nodes", made.node))


def need(namespace: str, node: str, container: str, peak_bytes: int) -> NodeNeed:
    """Remember nine full days of one container."""
    days = [write_moment(time.time() - ago * DAY)[:10] for ago in reversed(range(9))]
    rows = tuple(
        NeedDay(day, peak_bytes, pods=3, held_seconds=DAY, started=1, process_bytes=peak_bytes)
        for day in days
    )
    key = NeedKey(namespace, "Deployment", "worker", container, T4.model)
    return NodeNeed(node, (OwnerNeed(key, rows),), (T4,))


@contextmanager
def living(agents: ClusterSite, *measured: NodeNeed) -> Iterator[list[NeedStore]]:
    """Let an agent of each node live, which adds what it measures to what it finds."""
    running = []
    try:
        for new in measured:
            store = NeedStore(agents.client(new.node), agents.settings(node=new.node))
            running.append(store)
            store.start()
        for store, new in zip(running, measured, strict=True):
            found = _found(store)
            store.store(both(new, found.need))
        yield running
    finally:
        for store in running:
            store.stop()


def _found(store: NeedStore) -> StoredNeed:
    return wait_for(lambda: store.found)


def test_nothing_is_forgotten_that_all_nodes_have_seen(
    shared_site: ControllerSite, agents: ClusterSite, full_namespace: str
) -> None:
    """
    All programs end, a node vanishes, all begin again at once: the profile is the same one, what it
    applies too, and the node that comes back under its name finds its days.
    """
    one, two = agents.node, f"node-{uuid4().hex[:8]}"
    agents.add_node(two)
    shared_site.deploy(full_namespace, "worker", 0)

    def status(*keys: str) -> list[Any]:
        said = shared_site.profile(full_namespace, WORKER).get("status", {})
        return [said.get(key) for key in keys]

    def seen(*nodes: int) -> list[NodeNeed]:
        of_one = need(full_namespace, one, "pause", 4 * GIB)
        late = need(full_namespace, one, "late", GIB)
        return [of_one, need(full_namespace, two, "pause", 5 * GIB), late][slice(*nodes)]

    with shared_site.controller() as controller, living(agents, *seen(0, 2)):
        wait_until(lambda: status("peak") == ["5120Mi"], controller.lines)
        shared_site.say(full_namespace, WORKER, apply="AtCreate")
        wait_until(lambda: status("applied") != [None], controller.lines)
    before = shared_site.profile(full_namespace, WORKER)
    agents.drop(core("nodes", two))
    with shared_site.controller() as controller, living(agents, *seen(2, 3)):
        wait_until(lambda: len(status("containers")[0]) == 2, controller.lines)
        after = shared_site.profile(full_namespace, WORKER)
    agents.add_node(two)
    with living(agents, NodeNeed(two)) as (again,):
        found = _found(again)
    for name in (one, two):
        agents.drop(core("namespaces", agents.system, "configmaps", need_configmap(name)))
    agents.drop(core("nodes", two))
    shared_site.remove(full_namespace)

    pause = next(item for item in after["status"]["containers"] if item["name"] == "pause")
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert before["status"]["containers"] == [pause]
    assert before["status"]["applied"][0] in after["status"]["applied"]
    assert seen(1, 2)[0].owners == found.need.owners
