"""Two played nodes for all tests of a module; controllers come and go."""

from collections.abc import Iterator

import pytest

from simulator.controlplane import ControlPlane
from tests.support.controller.site import ControllerSite


@pytest.fixture(scope="module")
def shared_site(full_control_plane: ControlPlane) -> Iterator[ControllerSite]:
    with (
        full_control_plane.fresh_namespace("system") as system,
        ControllerSite(full_control_plane, system) as ready,
        ready.played,
        ready.agents,
    ):
        ready.install()
        yield ready


@pytest.fixture
def site(shared_site: ControllerSite, full_namespace: str) -> Iterator[ControllerSite]:
    """The cluster without pods of other tests, and everybody idle."""
    shared_site.played.busy.clear()
    shared_site.played.unknown.clear()
    shared_site.played.greedy.clear()
    shared_site.played.contradictions.clear()
    shared_site.played.clock_ahead_seconds = 0.0
    shared_site.agents.silent.clear()
    shared_site.agents.stale.clear()
    yield shared_site
    shared_site.remove(full_namespace)
