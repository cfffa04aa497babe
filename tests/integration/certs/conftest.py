"""A namespace with the manifests applied and nothing run yet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.controlplane import ControlPlane
from tests.integration.certs.site import CertsSite


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[CertsSite]:
    with CertsSite(control_plane, namespace, tmp_path) as made:
        try:
            made.install()
            yield made
        finally:
            made.remove()
