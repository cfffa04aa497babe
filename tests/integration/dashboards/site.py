"""
Webhook, agent and controller at work, scraped by a real Prometheus as the shipped monitors say.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import jsonpatch

from gpufence import names
from kube import JsonObject, PatchType, core, group
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from tests.support import objects
from tests.support.agent.node_site import OVER, WITHIN, NodeSite, fenced_pod
from tests.support.authority import Authority, write_files
from tests.support.controller.process import ControllerProcess
from tests.support.controller.site import COMPONENT
from tests.support.manifests import COMPONENTS, moved
from tests.support.manifests import objects as manifests
from tests.support.owners import controlled
from tests.support.processes import LOOPBACK
from tests.support.prometheus import Prometheus, Target, prometheus
from tests.support.reviews import encoded, review
from tests.support.site import AGENT, RIGHTS, WEBHOOK
from tests.support.webhook import Webhook

SCRAPE_SECONDS = 1.0
_AGENT = {"GPUFENCE_IDLE_SECONDS": "1", "GPUFENCE_ACTIVITY_SECONDS": "0.5"}
_NODE_NAME = "__meta_kubernetes_pod_node_name"


class ScrapedSite(NodeSite):
    """A node on which one pod keeps its limit, one breaks it, and one does nothing."""

    webhook: Webhook
    prometheus: Prometheus
    team: str

    def install(self) -> None:
        super().install()
        shipped = (item for item in manifests(COMPONENT) if item["kind"] in RIGHTS | {"Lease"})
        self.apply(*self.shipped("webhook"), *(moved(item, self.system) for item in shipped))
        switch = objects.policy(self.system, "evict")
        switch["data"][names.POLICY_MAX_IDLE] = "release"
        self.apply(switch)

    def admit(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Return a pod as the webhook rewrites it."""
        body = encoded(review(object=pod, namespace=self.team))
        answer = json.loads(self.webhook.post("/v1/pods/cap", body)[1])["response"]
        patch = json.loads(base64.b64decode(answer["patch"]))
        rewritten: dict[str, Any] = jsonpatch.apply_patch(pod, patch)
        return rewritten

    def people(self) -> None:
        """
        Make the pods; the one that does nothing belongs to a StatefulSet, which may be released.
        """
        labels = {"metadata": {"labels": {names.MODE: "cap", names.IDLE: "release"}}}
        self.admin.patch(core("namespaces", self.team), labels, PatchType.MERGE)
        owner = self.admin.post(
            group("apps/v1", "namespaces", self.team, "statefulsets"), _stateful_set("idle")
        )
        for card, (name, script) in enumerate((("good", WITHIN), ("greedy", OVER))):
            self._place(self.admit(_workload(name, script, card)))
        self._place(controlled(self.admit(_workload("idle-0", WITHIN, 2)), owner))

    def targets(self, ports: dict[str, int]) -> Iterator[tuple[str, Target]]:
        """Yield each program's page with the labels that Prometheus' operator would give it."""
        for monitor in manifests(COMPONENTS / "prometheus-operator"):
            if monitor["kind"] != "PodMonitor":
                continue
            name = monitor["metadata"]["name"]
            (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
            labels = {
                "namespace": self.system,
                "pod": f"{name}-0",
                "container": name.removeprefix("gpufence-"),
                "endpoint": endpoint["port"],
            }
            for rule in endpoint.get("relabelings", ()):
                assert [_NODE_NAME] == rule["sourceLabels"]
                labels[rule["targetLabel"]] = self.node.name
            honor = endpoint.get("honorLabels", False)
            yield f"{self.system}/{name}", Target(f"{LOOPBACK}:{ports[name]}", labels, honor)

    def _place(self, pod: dict[str, Any]) -> None:
        pod["spec"]["nodeName"] = self.node.name
        self.admin.post(core("namespaces", self.team, "pods"), pod)


def _workload(name: str, script: str, card: int) -> dict[str, Any]:
    """Describe a pod as its author wrote it, but for the card, which a scheduler chooses."""
    pod = fenced_pod(name, script, card)
    del pod["metadata"]["annotations"][names.INJECTED]
    return pod


def _stateful_set(name: str) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": fenced_pod(name, WITHIN)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@contextmanager
def running(plane: ControlPlane, folder: Path) -> Iterator[ScrapedSite]:
    """Start everything, and wait for nothing: who asks Prometheus does."""
    name = f"gpu-{uuid4().hex[:8]}"
    options = NodeOptions(
        kubeconfig=plane.node_kubeconfig(name),
        admin_kubeconfig=plane.kubeconfig(),
        name=name,
        cards="3xT4",
    )
    authority = Authority(folder)
    write_files(folder, authority.leaf())
    with ExitStack() as undo:
        system = undo.enter_context(plane.fresh_namespace("system"))
        node = undo.enter_context(SimulatedNode(options))
        site = undo.enter_context(ScrapedSite(plane, node, system))
        site.install()
        site.team = undo.enter_context(plane.fresh_namespace())
        account = str(site.kubeconfig_of(names.WEBHOOK_SERVICE))
        site.webhook = undo.enter_context(
            Webhook(
                folder,
                authority.client_context(),
                GPUFENCE_CLUSTER="auto",
                GPUFENCE_DEFAULT_CARD="15360Mi",
                KUBECONFIG=account,
            )
        )
        agent = undo.enter_context(site.agent(**_AGENT))
        controller = undo.enter_context(
            ControllerProcess(
                KUBECONFIG=str(site.kubeconfig_of(names.CONTROLLER)),
                GPUFENCE_NAMESPACE=system,
                GPUFENCE_AGENTS=f"{name}=http://{LOOPBACK}:{agent.port}",
            )
        )
        ports = {
            WEBHOOK: site.webhook.status_port,
            AGENT: agent.port,
            names.CONTROLLER: controller.port_of("statusListen"),
        }
        targets = dict(site.targets(ports))
        site.prometheus = undo.enter_context(prometheus(folder, targets, SCRAPE_SECONDS))
        site.people()
        yield site
        site.fenced.append(site.team)
        site.clear()
