"""
One real control plane for tests that follow each other, one fresh namespace for each.

Its programs are built before the first test begins, where no test's timeout runs and progress can
be seen.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from simulator.controlplane.programs import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KUBECTL,
    SCHEDULER,
)
from simulator.progress import Progress
from simulator.published import HELM
from tests.support.site import expect_what_is_missing

PLAIN = (ETCD, API_SERVER, KUBECTL)
FULL = (*PLAIN, CONTROLLER_MANAGER, SCHEDULER)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    expect_what_is_missing(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the collected tests need."""
    used = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly or "assets" not in used:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        Assets.from_environment(os.environ).ensure(
            FULL if {"full_control_plane", "full_assets"} & used else PLAIN, Progress(sys.stderr)
        )
        if "helm_program" in used:
            HELM.ensure(Assets.from_environment(os.environ), Progress(sys.stderr))


@pytest.fixture(scope="session")
def assets() -> Assets:
    """The programs of the control plane, built by now."""
    return Assets.from_environment(os.environ)


@pytest.fixture(scope="session")
def full_assets(assets: Assets) -> Assets:
    """The same with scheduler and controller manager."""
    return assets


@pytest.fixture(scope="session")
def helm_program(assets: Assets) -> Path:
    """Helm, built by now."""
    return HELM.ensure(assets, Progress(sys.stderr))


@pytest.fixture(scope="package")
def control_plane(assets: Assets) -> Iterator[ControlPlane]:
    """Run etcd and the API server; a test that stops the API server starts it again."""
    with ControlPlane.start(assets) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace that nobody else uses."""
    with control_plane.fresh_namespace() as name:
        yield name


@pytest.fixture(scope="package")
def full_control_plane(assets: Assets) -> Iterator[ControlPlane]:
    """A control plane with scheduler and controller manager, so that pods find nodes."""
    with ControlPlane.start(assets, PlaneOptions(scheduler=True, controller_manager=True)) as plane:
        yield plane


@pytest.fixture
def full_namespace(full_control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the full control plane, in which pods can be made."""
    with full_control_plane.fresh_namespace() as name:
        yield name
