"""A node, the manifests of its agent, and pods to be judged, on a real API server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from agent.cluster import AgentCluster, ClusterSettings
from agent.concerns.need.concern import NeedStore
from agent.model.decision import Action, Outcome, Verdict
from agent.model.pod import PodOnNode
from gpufence import names
from gpufence.times import Backoff
from kube import Client, ClientSettings, JsonObject, PatchType, connect, core, group
from kube.watch import WatchSettings
from simulator.controlplane import ControlPlane
from tests.support.builders import card, gpushare, node_cards
from tests.support.observing import eventually
from tests.support.site import PlaneSite

T = TypeVar("T")

CARDS = node_cards(card(0), card(1))
WATCHING = WatchSettings(backoff=Backoff(first_seconds=0.1, limit_seconds=0.2))


class ClusterSite(PlaneSite):
    """One system namespace of its own, in which the shipped manifests are applied."""

    def __init__(self, plane: ControlPlane, folder: Path, system: str) -> None:
        super().__init__(plane, system)
        self.folder = folder
        self.node = f"node-{uuid4().hex[:8]}"

    def install(self, *, plain: bool = False) -> None:
        """Apply the rights as they lie in the tree, but in another namespace."""
        self.apply(*self.shipped_agent(plain=plain))
        self.set_policy("evict")
        self.add_node(self.node)

    def add_node(self, name: str) -> None:
        self.admin.post(core("nodes"), {"metadata": {"name": name}})
        offered = {names.GPUSHARE_MEMORY: "30", names.GPUSHARE_COUNT: "2"}
        path = core("nodes", name, "status")
        body = {"status": {"capacity": offered, "allocatable": offered}}
        self.admin.patch(path, body, PatchType.MERGE)

    def add_pod(self, namespace: str, name: str = "a", **more: Any) -> JsonObject:
        """Bind a pod to the node, running and ready as its kubelet would say."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "web"}, **more.pop("metadata", {})},
            "spec": {"containers": [gpushare()], "nodeName": self.node, **more},
        }
        self.admin.post(core("namespaces", namespace, "pods"), body)
        status = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "x",
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "containerID": f"containerd://{name}",
                }
            ],
        }
        path = core("namespaces", namespace, "pods", name, "status")
        return self.admin.patch(path, {"status": status}, PatchType.MERGE)

    def add_budget(
        self,
        namespace: str,
        name: str = "all",
        *,
        allowed: int = 0,
        observed: bool = True,
        pending: int = 0,
    ) -> None:
        """Make a disruption budget as the disruption controller would keep it."""
        path = group("policy/v1", "namespaces", namespace, "poddisruptionbudgets")
        made = self.admin.post(
            path,
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            },
        )
        status = {
            "observedGeneration": made["metadata"]["generation"] if observed else 0,
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "disruptedPods": {f"p{n}": "2026-01-02T03:04:05Z" for n in range(pending)},
        }
        self.admin.patch(f"{path}/{name}/status", {"status": status}, PatchType.MERGE)

    def client(self, node: str = "") -> Client:
        """Speak as the agent's account in a pod on a node, by default the site's own."""
        token = self.folder / f"{uuid4().hex[:8]}.token"
        token.write_text(self.token_of_agent(node or self.node))
        settings = ClientSettings(
            server=self.plane.url, ca_file=self.plane.ca_file, token_file=token
        )
        return connect(settings)

    def settings(self, **more: Any) -> ClusterSettings:
        said: dict[str, Any] = {
            "node": self.node,
            "system_namespace": self.system,
            "watching": WATCHING,
            "backoff": Backoff(first_seconds=0.05, limit_seconds=0.2),
            "publish_pause_seconds": 0.05,
        }
        return ClusterSettings(**said | more)

    @contextmanager
    def cluster(self, client: Client | None = None, **more: Any) -> Iterator[AgentCluster]:
        """Run an agent's part that speaks with the API server, from when it knows everything on."""
        cluster = AgentCluster(client or self.client(), self.settings(**more))
        cluster.start()
        try:
            cluster.publish(CARDS)
            wait_for(lambda: cluster.pods().fresh or None, cluster)
            yield cluster
        finally:
            cluster.close()

    @contextmanager
    def needs(self, client: Client | None = None, **more: Any) -> Iterator[NeedStore]:
        """Run what keeps the needs of a node."""
        store = NeedStore(client or self.client(), self.settings(**more))
        store.start()
        try:
            yield store
        finally:
            store.stop()


def known(cluster: AgentCluster, uid: str) -> PodOnNode:
    """Wait until the agent knows a pod that runs, with its limit."""

    def find() -> PodOnNode | None:
        pod = cluster.pods().by_uid.get(uid)
        return pod if pod is not None and pod.limits and pod.mode and pod.containers else None

    return wait_for(find, cluster)


def wait_for(find: Callable[[], T | None], cluster: AgentCluster | None = None) -> T:
    """Wait for something to be found."""
    found: list[T] = []

    def look() -> bool:
        item = find()
        if item is not None:
            found.append(item)
        return bool(found)

    assert eventually(look), "" if cluster is None else f"{cluster.status()} {cluster.pods()}"
    return found[0]


def verdict(pod: PodOnNode, action: Action = Action.EVICT) -> Verdict:
    return Verdict(pod, Outcome.EVICT, action=action)
