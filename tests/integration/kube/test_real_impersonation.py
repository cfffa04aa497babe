"""What an agent may do as its own node, and nothing beyond."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kube import Client, ClientSettings, ForbiddenError, connect, core, group
from kube.informers.reflector import Reflector
from kube.watch import Source
from simulator.controlplane import ControlPlane
from tests.integration.kube.builders import client_of, name_of, pod
from tests.support.site import AS_ITS_NODE

pytestmark = pytest.mark.since(*AS_ITS_NODE, skip=True)
RULES = [
    {
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["nodes"],
        "verbs": ["impersonate:associated-node"],
    },
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": [f"impersonate-on:associated-node:{verb}" for verb in ("list", "watch", "get")],
    },
]


@dataclass(frozen=True)
class Agent:
    """A pod-bound identity on a node of its own, with one tenant beside it."""

    client: Client
    node: str

    @property
    def own_pods(self) -> dict[str, str]:
        return {"fieldSelector": f"spec.nodeName={self.node}"}


@pytest.fixture
def agent(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Agent]:
    node = f"node-of-{namespace}"
    subject = {"kind": "ServiceAccount", "namespace": namespace, "name": "agent"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    rbac = "rbac.authorization.k8s.io/v1"
    with client_of(control_plane.kubeconfig()) as admin:
        admin.post(core("nodes"), {"metadata": {"name": node}})
        admin.post(
            core("namespaces", namespace, "serviceaccounts"), {"metadata": {"name": "agent"}}
        )
        admin.post(group(rbac, "clusterroles"), {"metadata": {"name": namespace}, "rules": RULES})
        binding = {"metadata": {"name": namespace}, "roleRef": role, "subjects": [subject]}
        admin.post(group(rbac, "clusterrolebindings"), binding)
        pods = core("namespaces", namespace, "pods")
        admin.post(pods, pod("agent", nodeName=node, serviceAccountName="agent"))
        admin.post(pods, pod("tenant", nodeName=node))
        (tmp_path / "token").write_text(
            control_plane.service_account_token(namespace, "agent", pod="agent")
        )
        settings = ClientSettings(
            server=control_plane.url,
            ca_file=control_plane.ca_file,
            token_file=tmp_path / "token",
        )
        with connect(settings) as client:
            yield Agent(client, node)
        admin.delete(core("nodes", node))


@pytest.mark.since(*AS_ITS_NODE)
def test_as_its_node_the_agent_sees_the_pods_of_its_node(agent: Agent) -> None:
    """The one header is enough to list the own node's pods."""
    as_node = agent.client.impersonating(f"system:node:{agent.node}")

    listing = as_node.list(core("pods"), agent.own_pods)

    assert ["agent", "tenant"] == sorted(name_of(item) for item in listing.items)


def test_as_its_node_the_agent_can_watch(agent: Agent) -> None:
    """A reflector impersonates as its client does."""

    class Names:
        known: tuple[str, ...] = ()

        def replace(self, objects: object) -> None:
            self.known = tuple(sorted(objects))  # type: ignore[call-overload]  # a list of names

        def apply(self, change: str, item: str) -> None:
            raise AssertionError(f"{change} {item}: nothing changes here")

    source = Source(path=core("pods"), keep=name_of, query=agent.own_pods, from_cache=True)
    as_node = agent.client.impersonating(f"system:node:{agent.node}")
    reflector = Reflector(as_node, source, names := Names())
    reflector.start()
    synced = reflector.wait_until_synced(30)
    reflector.stop()

    assert synced
    assert ("agent", "tenant") == names.known


def test_as_itself_the_agent_sees_nothing(agent: Agent) -> None:
    """Without the header the identity is worth nothing."""
    with pytest.raises(ForbiddenError, match="403 Forbidden"):
        agent.client.list(core("pods"), agent.own_pods)


def test_the_whole_cluster_stays_hidden(agent: Agent) -> None:
    """Even as its node, the agent cannot list pods of other nodes."""
    with pytest.raises(ForbiddenError):
        agent.client.impersonating(f"system:node:{agent.node}").list(core("pods"))


def test_no_other_node_can_be_impersonated(agent: Agent) -> None:
    """The refusal names the request and as whom it was made."""
    stranger = agent.client.impersonating("system:node:another")

    with pytest.raises(ForbiddenError, match=r"GET /api/v1/pods \(as system:node:another\): 403"):
        stranger.list(core("pods"), {"fieldSelector": "spec.nodeName=another"})
