"""One cluster for all of it: KEDA, a broker, Prometheus, a node, its agent and the controller."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.controlplane import Assets
from simulator.progress import Progress
from tests.keda.site import KedaSite, missing, packages_line, running
from tests.support.controller.site import ControllerProcess


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KedaSite]:
    """Run everything but the controller."""
    absent = missing()
    if absent:
        pytest.fail(packages_line(absent), pytrace=False)
    folder = Path(tmp_path_factory.mktemp("keda"))
    assets = Assets.from_environment(os.environ)
    with running(assets, folder, Progress(sys.stderr)) as ready:
        yield ready


@pytest.fixture
def controller(site: KedaSite) -> Iterator[ControllerProcess]:
    """Run the controller, as long as a test takes."""
    with site.controller() as process:
        process.wait_until_leading()
        yield process
