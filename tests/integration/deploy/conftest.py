"""
A control plane of its own for the folder: whole installations would disturb everybody else's tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simulator.controlplane import ControlPlane, PlaneOptions
from tests.integration.deploy import strangers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.controlplane import Assets


@pytest.fixture(scope="session")
def plane(assets: Assets) -> Iterator[ControlPlane]:
    """
    Run an API server with controllers, which know the foreign kinds that components speak of.
    """
    with ControlPlane.start(assets, PlaneOptions(controller_manager=True)) as running:
        strangers.admit(running)
        yield running
