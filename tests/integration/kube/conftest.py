"""An administrator of the session's control plane."""

from collections.abc import Iterator

import pytest

from kube import Client
from simulator.controlplane import ControlPlane
from tests.integration.kube.builders import client_of


@pytest.fixture
def client(control_plane: ControlPlane) -> Iterator[Client]:
    with client_of(control_plane.kubeconfig()) as admin:
        yield admin
