"""
An administrator of the session's control plane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.kube.builders import client_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kube import Client
    from simulator.controlplane import ControlPlane


@pytest.fixture
def client(control_plane: ControlPlane) -> Iterator[Client]:
    with client_of(control_plane.kubeconfig()) as admin:
        yield admin
