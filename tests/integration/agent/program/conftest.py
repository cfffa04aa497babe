"""One node for all tests of a module; agents come and go."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from tests.support.agent.node_site import NodeSite


@pytest.fixture(scope="module")
def shared_site(control_plane: ControlPlane) -> Iterator[NodeSite]:
    name = f"gpu-{uuid4().hex[:8]}"
    options = NodeOptions(
        kubeconfig=control_plane.node_kubeconfig(name),
        admin_kubeconfig=control_plane.kubeconfig(),
        name=name,
        cards="8xT4",
    )
    with (
        control_plane.fresh_namespace("system") as system,
        SimulatedNode(options) as node,
        NodeSite(control_plane, node, system) as ready,
    ):
        ready.install()
        yield ready


@pytest.fixture
def site(shared_site: NodeSite, namespace: str) -> Iterator[NodeSite]:
    """The node without pods of other tests; theirs go before their namespace does."""
    del namespace
    yield shared_site
    shared_site.clear()
