"""A simulated node with its agent's rights, and fenced pods on it."""

from dataclasses import dataclass
from typing import Any

from gpufence import names
from kube import Client, NotFoundError, core
from simulator.controlplane import ControlPlane
from simulator.node import SimulatedNode
from simulator.nvml.build import environment
from tests.support.agent.process import AgentProcess
from tests.support.node_ground import Ground, pod, workload
from tests.support.objects import agent_pod
from tests.support.observing import wait_until
from tests.support.site import AGENT, PlaneSite

GPU = {"limits": {names.GPUSHARE_MEMORY: "2"}}
WITHIN = "hold 1Gi"
OVER = "hold 3Gi"


@dataclass(frozen=True)
class Fenced(Ground):
    """A fenced namespace, asked without starting a kubectl for each look."""

    admin: Client

    def get(self, name: str) -> dict[str, Any] | None:
        try:
            return self.admin.get(core("namespaces", self.namespace, "pods", name))
        except NotFoundError:
            return None


class NodeSite(PlaneSite):
    """`system` is where the shipped rights are applied, in a namespace of its own."""

    def __init__(self, plane: ControlPlane, node: SimulatedNode, system: str) -> None:
        super().__init__(plane, system)
        self.node = node
        self.fenced: list[str] = []

    def install(self) -> None:
        self.apply(*self.shipped_agent())
        self.set_policy("evict")
        self.admin.post(
            core("namespaces", self.system, "pods"), agent_pod(self._agent, self.node.name)
        )

    def ground(self, namespace: str, mode: str = "evict") -> Fenced:
        """Fence a namespace."""
        self.label(namespace, mode)
        self.fenced.append(namespace)
        return Fenced(self.plane, namespace, self.node, self.admin)

    def clear(self) -> None:
        """Take all fenced pods away."""
        while self.fenced:
            where = ("-n", self.fenced.pop())
            self.plane.kubectl("delete", "pods", "--all", *where, "--now", "--ignore-not-found")

    def environment(self) -> dict[str, str]:
        """Return what a pod of the DaemonSet would have, its token in a kubeconfig."""
        token = self.plane.service_account_token(self.system, AGENT, pod=self._agent)
        return {
            **environment(self.node.state.path),
            "KUBECONFIG": str(self.kubeconfig_of(AGENT, token)),
            "GPUFENCE_NODE": self.node.name,
            "GPUFENCE_NAMESPACE": self.system,
            "GPUFENCE_PROC": str(self.node.proc_root),
        }

    def agent(self, **settings: str) -> AgentProcess:
        return AgentProcess(**self.environment() | settings)

    @property
    def _agent(self) -> str:
        return f"{AGENT}-{self.node.name}"


def fenced_pod(name: str, script: str, card: int = 0) -> dict[str, Any]:
    """Describe a pod for a card whose limit is 2 GiB, as the webhook would have left it."""
    annotations = {names.INJECTED: "nothing", names.GPUSHARE_CARD_INDEX: str(card)}
    container = workload(script, "--context", "100Mi", resources=GPU)
    return pod(name, container, annotations=annotations)


def place(ground: Ground, *pods: dict[str, Any]) -> None:
    """Put pods on the node, past any scheduler."""
    for item in pods:
        item["spec"]["nodeName"] = ground.node.name
    ground.create({"apiVersion": "v1", "kind": "List", "items": list(pods)})


def is_gone(ground: Ground, name: str) -> bool:
    """Tell whether a pod was asked to go."""
    found = ground.get(name)
    return found is None or "deletionTimestamp" in found["metadata"]


def wait_until_gone(ground: Ground, name: str, agent: AgentProcess) -> None:
    wait_until(lambda: is_gone(ground, name), f"{agent.snapshot()} {agent.lines[-5:]}")


def events(ground: Fenced, reason: str) -> list[dict[str, Any]]:
    """Return the Events of a reason."""
    found = ground.admin.get(core("namespaces", ground.namespace, "events"))
    return [item for item in found["items"] if item["reason"] == reason]
