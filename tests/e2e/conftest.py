"""One real cluster of one node for all tests, with gpufence installed as its manual says."""

import os
import sys
from collections.abc import Generator, Iterator

import pytest

from simulator.cluster import SimulatedCluster
from simulator.controlplane import Assets
from simulator.progress import Progress
from tests.e2e.registry import filled_registry
from tests.e2e.site import RealSite
from tests.support.browser import Chromium, Tab


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[SimulatedCluster]:
    """Start a cluster, progress visible, and end it with all that ran in it."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        started = SimulatedCluster.start(
            Assets.from_environment(os.environ), progress=Progress(sys.stderr)
        )
    with started:
        yield started


@pytest.fixture(scope="session")
def site(cluster: SimulatedCluster) -> Iterator[RealSite]:
    """The cluster with gpufence in it, ready to fence."""
    with RealSite(cluster) as made:
        made.install()
        yield made


@pytest.fixture(scope="session")
def registry(cluster: SimulatedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, on the node as here, of a registry with our images in it."""
    with filled_registry(cluster, tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    with Chromium() as running:
        yield running


@pytest.fixture
def tab(browser: Chromium) -> Iterator[Tab]:
    with browser.tab() as opened:
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what the cluster has to say; soon nobody can ask it any more."""
    report = yield
    site = getattr(item, "funcargs", {}).get("site")
    if report.failed and isinstance(site, RealSite) and site.cluster.is_running:
        report.sections.append(("the cluster", site.diagnosis()))
    return report


@pytest.fixture
def team(site: RealSite) -> Iterator[str]:
    """A namespace whose pods are fenced."""
    with site.namespace("evict") as name:
        yield name
