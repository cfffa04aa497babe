"""One site for all tests of a module, and an agent's cluster part that runs all the while."""

from collections.abc import Iterator

import pytest

from agent.cluster import AgentCluster
from simulator.controlplane import ControlPlane
from tests.integration.agent.cluster.site import ClusterSite


@pytest.fixture(scope="module")
def bare(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterSite]:
    """A site before anything is applied."""
    folder = tmp_path_factory.mktemp("agent")
    with (
        control_plane.fresh_namespace("system") as system,
        ClusterSite(control_plane, folder, system) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def site(bare: ClusterSite) -> ClusterSite:
    bare.install()
    return bare


@pytest.fixture(scope="module")
def cluster(site: ClusterSite) -> Iterator[AgentCluster]:
    with site.cluster() as running:
        yield running


@pytest.fixture
def namespace(bare: ClusterSite) -> Iterator[str]:
    """A namespace that nobody else uses, made without the time that kubectl takes to start."""
    with bare.namespace() as name:
        yield name


@pytest.fixture
def fenced(site: ClusterSite, namespace: str) -> str:
    """A namespace of its own in which pods are evicted."""
    site.label(namespace, "evict")
    return namespace
