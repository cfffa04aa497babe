"""
One site for all tests of a module, and an agent's cluster part that runs all the while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from kube import ClientSettings, connect, core
from tests.integration.agent.cluster.site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.cluster import AgentCluster
    from simulator.controlplane import ControlPlane


@pytest.fixture(scope="module")
def bare(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """
    A site before anything is applied.
    """
    folder = tmp_path_factory.mktemp("agent")
    with (
        connect(ClientSettings(kubeconfig=str(control_plane.kubeconfig()))) as admin,
        control_plane.fresh_namespace("system") as system,
    ):
        yield Site(control_plane, folder, admin, system, f"node-{uuid4().hex[:8]}")


@pytest.fixture(scope="module")
def site(bare: Site) -> Site:
    bare.install()
    return bare


@pytest.fixture(scope="module")
def cluster(site: Site) -> Iterator[AgentCluster]:
    with site.cluster() as running:
        yield running


@pytest.fixture
def namespace(bare: Site) -> Iterator[str]:
    """
    A namespace that nobody else uses, made without the time that kubectl takes to start.
    """
    name = f"test-{uuid4().hex[:8]}"
    bare.admin.post(core("namespaces"), {"metadata": {"name": name}})
    yield name
    bare.admin.delete(core("namespaces", name))


@pytest.fixture
def fenced(site: Site, namespace: str) -> str:
    """
    A namespace of its own in which pods are evicted.
    """
    site.label(namespace, "evict")
    return namespace
