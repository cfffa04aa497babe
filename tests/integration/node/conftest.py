"""One simulated node for all tests of a module that need nothing special of it."""

from collections.abc import Iterator

import pytest

from kube import Client, ClientSettings, connect
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, RestartPauses, SimulatedNode
from tests.support.agent.node_site import Ground


@pytest.fixture(scope="module")
def node(control_plane: ControlPlane) -> Iterator[SimulatedNode]:
    """A node with two cards that restarts crashed containers without long pauses."""
    options = NodeOptions(
        kubeconfig=control_plane.node_kubeconfig("node-shared"),
        admin_kubeconfig=control_plane.kubeconfig(),
        name="node-shared",
        cards="T4,T4",
        pauses=RestartPauses(first_seconds=0.3),
    )
    with SimulatedNode(options) as running:
        yield running


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlane) -> Iterator[Client]:
    with connect(ClientSettings(kubeconfig=str(control_plane.kubeconfig()))) as client:
        yield client


@pytest.fixture
def ground(
    control_plane: ControlPlane, namespace: str, node: SimulatedNode, admin: Client
) -> Ground:
    """A fresh namespace for pods on that node."""
    return Ground(control_plane, namespace, node, admin)
