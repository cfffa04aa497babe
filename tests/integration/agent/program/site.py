"""
A simulated node with its agent's rights, and fenced pods on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import yaml

from gpufence import names
from kube import NotFoundError, core
from simulator.nvml.build import environment
from tests.integration.node.cluster import Ground, pod, workload
from tests.support.agent.process import AgentProcess
from tests.support.observing import eventually

if TYPE_CHECKING:
    from kube import Client
    from simulator.controlplane import ControlPlane
    from simulator.node import SimulatedNode

FOLDER = Path(__file__).parents[4] / "deploy" / "base" / "agent"
ACCOUNT = "gpufence-agent"
GPU = {"limits": {names.GPUSHARE_MEMORY: "2"}}
WITHIN = "hold 1Gi"
OVER = "hold 3Gi"


@dataclass(frozen=True)
class Fenced(Ground):
    """
    A fenced namespace, asked without starting a kubectl for each look.
    """

    admin: Client

    def get(self, name: str) -> dict[str, Any] | None:
        try:
            return self.admin.get(core("namespaces", self.namespace, "pods", name))
        except NotFoundError:
            return None


@dataclass
class Site:
    """
    `system` is where the shipped rights are applied, in a namespace of its own.
    """

    plane: ControlPlane
    node: SimulatedNode
    system: str
    admin: Client
    fenced: list[str] = field(default_factory=list)

    def install(self) -> None:
        text = (FOLDER / "rbac.yaml").read_text(encoding="utf-8")
        items = [self._moved(item) for item in yaml.safe_load_all(text)]
        self._apply(*items)
        self.set_policy("evict")
        self._apply(self._agent_pod())

    def set_policy(self, mode: str) -> None:
        """
        Turn the kill switch.
        """
        self._apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": names.POLICY_CONFIGMAP, "namespace": self.system},
                "data": {names.POLICY_MAX_MODE: mode},
            }
        )

    def label(self, namespace: str, mode: str) -> None:
        self.plane.kubectl("label", "--overwrite", "namespace", namespace, f"{names.MODE}={mode}")

    def ground(self, namespace: str, mode: str = "evict") -> Fenced:
        """
        Fence a namespace.
        """
        self.label(namespace, mode)
        self.fenced.append(namespace)
        return Fenced(self.plane, namespace, self.node, self.admin)

    def clear(self) -> None:
        """
        Take all fenced pods away.
        """
        while self.fenced:
            where = ("-n", self.fenced.pop())
            self.plane.kubectl("delete", "pods", "--all", *where, "--now", "--ignore-not-found")

    def environment(self) -> dict[str, str]:
        """
        Return what a pod of the DaemonSet would have, its token in a kubeconfig.
        """
        token = self.plane.service_account_token(self.system, ACCOUNT, pod=self._agent)
        kubeconfig = self.plane.token_kubeconfig(f"agent-{uuid4().hex[:8]}", token)
        return {
            **environment(self.node.state.path),
            "KUBECONFIG": str(kubeconfig),
            "GPUFENCE_NODE": self.node.name,
            "GPUFENCE_NAMESPACE": self.system,
            "GPUFENCE_PROC": str(self.node.proc_root),
        }

    def agent(self, **settings: str) -> AgentProcess:
        return AgentProcess(**self.environment() | settings)

    @property
    def _agent(self) -> str:
        return f"{ACCOUNT}-{self.node.name}"

    def _agent_pod(self) -> dict[str, Any]:
        spec = {
            "containers": [{"name": "agent", "image": "gpufence-agent"}],
            "nodeName": self.node.name,
            "serviceAccountName": ACCOUNT,
        }
        metadata = {"name": self._agent, "namespace": self.system}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _apply(self, *items: dict[str, Any]) -> None:
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
        self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=listed)

    def _moved(self, item: dict[str, Any]) -> dict[str, Any]:
        """
        Put an object of the manifests into another namespace, as kustomize does.
        """
        if not item["kind"].startswith("Cluster"):
            item["metadata"]["namespace"] = self.system
        for subject in item.get("subjects", []):
            subject["namespace"] = self.system
        return item


def fenced_pod(name: str, script: str, card: int = 0) -> dict[str, Any]:
    """
    Describe a pod for a card whose limit is 2 GiB, as the webhook would have left it.
    """
    annotations = {names.INJECTED: "nothing", names.GPUSHARE_CARD_INDEX: str(card)}
    container = workload(script, "--context", "100Mi", resources=GPU)
    return pod(name, container, annotations=annotations)


def place(ground: Ground, *pods: dict[str, Any]) -> None:
    """
    Put pods on the node, past any scheduler.
    """
    for item in pods:
        item["spec"]["nodeName"] = ground.node.name
    ground.create({"apiVersion": "v1", "kind": "List", "items": list(pods)})


def is_gone(ground: Ground, name: str) -> bool:
    """
    Tell whether a pod was asked to go.
    """
    found = ground.get(name)
    return found is None or "deletionTimestamp" in found["metadata"]


def wait_until_gone(ground: Ground, name: str, agent: AgentProcess) -> None:
    assert eventually(lambda: is_gone(ground, name)), f"{agent.snapshot()} {agent.lines[-5:]}"


def events(ground: Fenced, reason: str) -> list[dict[str, Any]]:
    """
    Return the Events of a reason.
    """
    found = ground.admin.get(core("namespaces", ground.namespace, "events"))
    return [item for item in found["items"] if item["reason"] == reason]
