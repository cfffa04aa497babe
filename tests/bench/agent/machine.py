"""A GPU node without a kubelet: real pods in the API, real processes, and memory of our choice."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpufence import names
from gpufence.quantity import MIB
from kube import Client, PatchType, core
from simulator.controlplane import Assets, ControlPlane
from simulator.node.pod import cgroup_lines, cgroup_path, read_pod
from simulator.node.processes import ProcRoot
from simulator.nvml.build import environment
from simulator.nvml.processes import CardPlace, Holding
from simulator.nvml.state import State
from simulator.progress import Progress
from tests.support.agent.node_site import AgentProcess
from tests.support.objects import agent_pod, large_pod, namespace
from tests.support.site import AGENT, PlaneSite

NODE = "bench"
EVICTING, CAPPING = "bench-evict", "bench-cap"
CARDS = 8
CARD_GIB = 40
LIFE_SECONDS = "3600"
"""If we are killed our processes end by themselves, some time."""


@dataclass(slots=True)
class Tenant:
    """A pod that runs, and what each of its processes holds."""

    namespace: str
    name: str
    uid: str
    cgroup: str
    holdings: list[Holding] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)


@dataclass
class Machine:
    """The node; `tenants` are its pods by uid."""

    plane: ControlPlane
    client: Client
    state: State
    folder: Path
    proc: ProcRoot
    tenants: dict[str, Tenant] = field(default_factory=dict)

    def admit(self, name: str, namespace: str = EVICTING, units: int = 1) -> Tenant:
        """Create a pod as large as real ones, and let it run."""
        container = secrets.token_hex(32)
        path = core("namespaces", namespace, "pods")
        made = self.client.post(path, _manifest(name, namespace, units))
        self.client.patch(f"{path}/{name}/status", _running(container), PatchType.MERGE)
        line = cgroup_lines(cgroup_path(read_pod(made), container))
        tenant = Tenant(namespace, name, str(made["metadata"]["uid"]), line)
        self.tenants[tenant.uid] = tenant
        return tenant

    def start(self, tenant: Tenant, card: int, memory: int) -> Holding:
        """Start a process that holds memory of a card."""
        process = subprocess.Popen(["sleep", LIFE_SECONDS])
        tenant.processes.append(process)
        holding = self.state.processes.put(CardPlace(card), process.pid, memory)
        tenant.holdings.append(holding)
        return holding

    def show(self) -> None:
        """Let /proc show whose the processes are."""
        self.proc.show(
            {
                process.pid: tenant.cgroup
                for tenant in self.tenants.values()
                for process in tenant.processes
            }
        )

    def dismiss(self, tenant: Tenant) -> None:
        """End a pod's processes, and take it out of the API as its kubelet does."""
        for process, holding in zip(tenant.processes, tenant.holdings, strict=True):
            holding.release()
            process.kill()
            process.wait()
        tenant.processes.clear()
        tenant.holdings.clear()
        path = core("namespaces", tenant.namespace, "pods", tenant.name)
        self.client.delete(path, {"gracePeriodSeconds": 0})
        del self.tenants[tenant.uid]

    def end(self) -> None:
        for tenant in self.tenants.values():
            for process in tenant.processes:
                process.kill()
                process.wait()
        self.proc.close()

    def agent(self, **settings: str) -> AgentProcess:
        """Run the agent with the rights, and by the way, of its pod."""
        token = self.folder / "token"
        token.write_text(
            self.plane.service_account_token(names.SYSTEM_NAMESPACE, AGENT, pod="agent")
        )
        access = (self.plane.url, str(self.plane.ca_file), str(token))
        said = {
            **environment(self.state.path),
            "GPUFENCE_NODE": NODE,
            "GPUFENCE_PROC": str(self.proc.folder),
            **settings,
        }
        return AgentProcess("tests.support.in_pod", "agent", *access, **said)


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """Make the node, its namespaces and its agent's rights on a control plane of their own."""
    progress = Progress(sys.stderr)
    assets = Assets.from_environment(os.environ)
    with ExitStack() as undo:
        plane = undo.enter_context(ControlPlane.start(assets, progress=progress))
        site = undo.enter_context(PlaneSite(plane))
        client = site.admin
        for name, mode in ((names.SYSTEM_NAMESPACE, ""), (EVICTING, "evict"), (CAPPING, "cap")):
            client.post(core("namespaces"), namespace(name, mode or None))
        site.apply(*site.shipped("agent"))
        site.set_policy("evict")
        client.post(core("nodes"), {"metadata": {"name": NODE}})
        offered = {names.GPUSHARE_MEMORY: f"{CARDS * CARD_GIB}", names.GPUSHARE_COUNT: f"{CARDS}"}
        status = {"status": {"capacity": offered, "allocatable": offered}}
        client.patch(core("nodes", NODE, "status"), status, PatchType.MERGE)
        client.post(core("namespaces", names.SYSTEM_NAMESPACE, "pods"), agent_pod("agent", NODE))
        state = State.create(folder / "cards", f"{CARDS}xA100-{CARD_GIB}")
        made = Machine(plane, client, state, folder, ProcRoot(folder / "proc"))
        undo.callback(made.end)
        yield made


def _manifest(name: str, namespace: str, units: int) -> dict[str, Any]:
    found = large_pod()
    found["metadata"] |= {"name": name, "namespace": namespace}
    del found["metadata"]["generateName"], found["metadata"]["ownerReferences"]
    found["metadata"]["annotations"][names.INJECTED] = "nothing"
    for container in found["spec"]["containers"]:
        for kind in ("limits", "requests"):
            container["resources"][kind][names.GPUSHARE_MEMORY] = f"{units}"
    found["spec"] |= {"nodeName": NODE}
    return found


def _running(container: str) -> dict[str, Any]:
    said = {
        "name": "trainer",
        "image": "registry.example.com/vision/trainer:1.42.0",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "containerID": f"containerd://{container}",
    }
    return {"status": {"phase": "Running", "containerStatuses": [said]}}


def crowd(node: Machine, pods: int, per_card: int, memory: int = 300 * MIB) -> list[Tenant]:
    """Fill the cards: so many pods, whose processes fill each card to the same number."""
    tenants = [
        node.admit(f"pod-{number}", CAPPING if number < CARDS else EVICTING, units=2)
        for number in range(pods)
    ]
    for card in range(CARDS):
        here = tenants[card::CARDS]
        for number in range(per_card):
            node.start(here[number % len(here)], card, memory)
    node.show()
    return tenants
