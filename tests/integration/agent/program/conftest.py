"""One node for all tests of the folder; agents come and go."""

from collections.abc import Iterator

import pytest

from simulator.controlplane import ControlPlane
from tests.support.agent.node_site import NodeSite, node_site


@pytest.fixture(scope="package")
def shared_site(control_plane: ControlPlane) -> Iterator[NodeSite]:
    with node_site(control_plane, cards="8xT4") as ready:
        yield ready


@pytest.fixture
def site(shared_site: NodeSite, namespace: str) -> Iterator[NodeSite]:
    """The node without pods of other tests; theirs go before their namespace does."""
    del namespace
    yield shared_site
    shared_site.clear()
