"""One site for all tests of a module, and an agent's cluster part that runs all the while."""

from collections.abc import Iterator

import pytest
import yaml

from agent.cluster import AgentCluster
from gpufence import names
from simulator.controlplane import ControlPlane
from tests.integration.agent.cluster.site import ClusterSite
from tests.support.site import policy_path, wait_until_enforced
from tools.manifests import BASE


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
def guarded(site: ClusterSite) -> Iterator[ClusterSite]:
    """The site with the agents' policies as shipped, about its own namespace."""
    text = (BASE / "agent" / "policies.yaml").read_text(encoding="utf-8")
    items = list(yaml.safe_load_all(text.replace(names.SYSTEM_NAMESPACE, site.system)))
    site.apply(*items)
    wait_until_enforced(site)
    yield site
    for item in items:
        site.admin.delete(policy_path(item))


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
