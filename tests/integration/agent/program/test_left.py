"""Memory that a driver goes on listing for processes that have ended."""

import os
import signal

from gpufence import names
from gpufence.quantity import GIB, MIB
from kube import core
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from tests.support.agent.node_site import WITHIN, NodeSite, fenced_pod, place
from tests.support.observing import wait_until

HELD = GIB + 100 * MIB


def told_of(site: NodeSite) -> list[str]:
    """Return what the Node's Events say of memory of no pod."""
    found = site.admin.get(core("namespaces", "default", "events"))["items"]
    about = [item for item in found if item["involvedObject"]["name"] == site.node.name]
    return [item["message"] for item in about if item["reason"] == names.UNATTRIBUTED]


def test_memory_of_dead_processes_is_known_to_be_their_pods(site: NodeSite, namespace: str) -> None:
    """While the card lists it: in snapshot, metric, table and the Node's Event."""
    ground = site.ground(namespace)
    place(ground, fenced_pod("holder", WITHIN))
    with site.agent() as agent:
        agent.wait_for_outcome("holder", "within")
        ((pid,),) = [
            [process.pid for process in use.processes]
            for pod in agent.snapshot().pods
            if (pod.namespace, pod.name) == (namespace, "holder")
            for use in pod.uses
        ]
        site.node.state.faults.add(Fault(FaultAction.LINGER))
        try:
            os.kill(pid, signal.SIGKILL)
            ground.delete("holder", "--grace-period=1")
            wait_until(lambda: any(card.left for card in agent.snapshot().cards), agent.lines[-5:])
            (left,) = [row for card in agent.snapshot().cards for row in card.left]
            metrics = agent.metrics()
            wait_until(lambda: f"{namespace}/holder" in str(told_of(site)), agent.lines[-5:])
        finally:
            site.node.state.faults.clear()
        wait_until(lambda: not any(card.left for card in agent.snapshot().cards))

    assert (f"{namespace}/holder", pid, HELD) == left
    assert HELD in [
        value for name, value in metrics.items() if name.startswith("gpufence_card_memory_left_")
    ]
