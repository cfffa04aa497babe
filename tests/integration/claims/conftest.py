"""
One node whose cards come by resource claims, on a control plane with Kubernetes' own scheduler, a
webhook and an agent.
"""

from collections.abc import Iterator

import pytest

from gpufence import names
from kube import group
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from tests.support.agent.node_site import NodeSite
from tests.support.authority import Authority
from tests.support.builders import device_class
from tests.support.observing import wait_until
from tests.support.webhook_site import Webhook, WebhookSite

NODE = "claims-a"


@pytest.fixture(scope="module")
def node(full_control_plane: ControlPlane) -> Iterator[SimulatedNode]:
    options = NodeOptions(
        kubeconfig=full_control_plane.node_kubeconfig(NODE), name=NODE, cards="T4", unit="claims"
    )
    with SimulatedNode(options) as running:
        yield running


@pytest.fixture(scope="module")
def webhook_site(
    full_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookSite]:
    """Lend a webhook's objects, and the class of GPUs."""
    folder = tmp_path_factory.mktemp("tls")
    classes = group(names.RESOURCE_GROUP, "deviceclasses")
    with WebhookSite(full_control_plane, Authority(), folder, full=True) as made:
        made.install()
        made.admin.post(classes, device_class())
        yield made
        made.drop(f"{classes}/{names.DRA_CLASSES[0]}")
        made.remove()


@pytest.fixture(scope="module")
def webhook(webhook_site: WebhookSite) -> Iterator[Webhook]:
    with webhook_site.webhook() as running:
        wait_until(lambda: running.get("/readyz")[0] == 200)
        with webhook_site.calling(running.port, running.calls):
            yield running


@pytest.fixture(scope="module")
def agent_site(
    full_control_plane: ControlPlane, node: SimulatedNode, webhook: Webhook
) -> Iterator[NodeSite]:
    """Lend the node with an agent's rights, beside the webhook."""
    del webhook
    with (
        full_control_plane.fresh_namespace("system") as system,
        NodeSite(full_control_plane, node, system) as ready,
    ):
        ready.install()
        yield ready


@pytest.fixture
def site(agent_site: NodeSite, full_namespace: str) -> Iterator[NodeSite]:
    """Lend it without pods of other tests."""
    del full_namespace
    yield agent_site
    agent_site.clear()
