"""Pods as large as an API server takes them, and ones that fill what etcd takes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpufence import names
from gpufence.quantity import MIB
from kube import PatchType, core
from tests.support.agent.node_site import (
    OVER,
    WITHIN,
    AgentProcess,
    Ground,
    NodeSite,
    events,
    fenced_pod,
    is_gone,
    place,
    wait_until_gone,
)
from tests.support.etcd import end, fill, forget_conditions, forget_writers, padded
from tests.support.observing import MEASURING, children_naming, eventually, memory_of, wait_until

PODS = 20
"""Some 135 MiB in one answer, more than the agent may hold."""
WRITTEN = "<" * (1_150 * 1024)  # JSON makes six bytes of each
MOST_BYTES = 128 * MIB


@pytest.mark.nightly
def test_fat_pods_of_a_stranger_leave_the_agent_its_memory(site: NodeSite, namespace: str) -> None:
    """
    An agent starts, follows changes and evicts within its memory limit, however large the pods of
    other namespaces on its node are.
    """
    with site.plane.fresh_namespace() as other:
        _fill(site, other)
        ground = site.ground(namespace)
        with site.agent() as agent:
            assert eventually(lambda: agent.snapshot().fresh)
            for number in range(5):
                path = core("namespaces", other, "pods", f"fat-{number}")
                body = {"metadata": {"labels": {"changed": "yes"}}}
                site.admin.patch(path, body, PatchType.MERGE)
            place(ground, fenced_pod("greedy", OVER))
            wait_until_gone(ground, "greedy", agent)
            most = _most_memory_of(agent)

    assert MOST_BYTES > most, f"{most / MIB:.0f} MiB"


def _fill(site: NodeSite, namespace: str) -> None:
    container = {"name": "main", "image": "x", "args": [WRITTEN]}
    spec = {"containers": [container], "nodeName": site.node.name}

    def make(number: int) -> None:
        body = {"metadata": {"name": f"fat-{number}"}, "spec": spec}
        site.admin.post(core("namespaces", namespace, "pods"), body)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, range(PODS)))


def _most_memory_of(agent: AgentProcess) -> int:
    """Return the most that the agent has held, its child included."""
    pid = agent.process.pid
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1024 + sum(map(memory_of, children_naming(pid, MEASURING)))


ROOM_TO_BE_BOUND = 300
"""Less than a status takes, more than a binding does."""


@contextmanager
def swollen(ground: Ground, room: int, *, hopeless: bool = False) -> Iterator[None]:
    """
    Run a pod over its limit, and fill it until so many bytes are left; if `hopeless`, what the
    agent could have taken off it has gone before, and is filled as well.
    """
    place(ground, fenced_pod("good", WITHIN), padded(fenced_pod("greedy", OVER)))
    ground.wait_for_start("greedy", "main")
    path = path_of(ground)
    if hopeless:
        forget_conditions(ground.admin, path)
    forget_writers(ground.admin, path)
    fill(ground.admin, path, room)
    with ended(ground):
        yield


@contextmanager
def ended(ground: Ground) -> Iterator[None]:
    try:
        yield
    finally:
        if ground.get("greedy") is not None:
            end(ground.admin, path_of(ground))
        wait_until(lambda: not ground.node.pids(ground.namespace, "greedy"))


def path_of(ground: Ground) -> str:
    return core("namespaces", ground.namespace, "pods", "greedy")


@pytest.mark.parametrize(
    "room",
    [
        pytest.param(150, id="no condition fits", marks=pytest.mark.nightly),
        pytest.param(0, id="nothing fits"),
    ],
)
def test_a_pod_that_was_made_too_large_goes(site: NodeSite, namespace: str, room: int) -> None:
    """A pod over its limit goes, however little can be written into it; its neighbour stays."""
    ground = site.ground(namespace)
    with swollen(ground, room), site.agent() as agent:
        wait_until_gone(ground, "greedy", agent)

    assert not is_gone(ground, "good")


def test_a_pod_that_the_api_cannot_end_is_named(site: NodeSite, namespace: str) -> None:
    """Where neither eviction nor deletion can be written into a pod, its Event says so."""
    ground = site.ground(namespace)
    with swollen(ground, 0, hopeless=True), site.agent() as agent:
        named = eventually(lambda: bool(events(ground, names.TERMINATION_STUCK)))
        told = events(ground, names.TERMINATION_STUCK)
        agent.wait_for_outcome("greedy", "stuck")
        stays = not is_gone(ground, "greedy")

    assert named
    assert stays
    assert ["greedy"] == [item["involvedObject"]["name"] for item in told]
    assert "Too large an object for etcd" in told[0]["message"]


@pytest.mark.soak
def test_a_pod_without_a_status_goes(site: NodeSite, namespace: str) -> None:
    """A pod so large that no status was ever written into it owns its memory, and goes for it."""
    ground = site.ground(namespace)
    ground.create(padded(fenced_pod("greedy", OVER)))
    path = path_of(ground)
    forget_writers(site.admin, path)
    fill(site.admin, path, ROOM_TO_BE_BOUND)
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "greedy"},
        "target": {"kind": "Node", "name": site.node.name},
    }
    site.admin.post(f"{path}/binding", body)
    with ended(ground):
        assert eventually(lambda: bool(site.node.pids(namespace, "greedy")))
        assert not ground.status("greedy").get("containerStatuses")
        with site.agent() as agent:
            wait_until_gone(ground, "greedy", agent)
