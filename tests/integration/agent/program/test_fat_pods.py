"""Pods that are as large as an API server takes them, bound to the agent's node."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpufence.quantity import MIB
from kube import PatchType, core
from tests.support.agent.node_site import (
    OVER,
    NodeSite,
    fenced_pod,
    place,
    wait_until_gone,
)
from tests.support.agent.process import AgentProcess
from tests.support.observing import MEASURING, children_naming, eventually, memory_of

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
