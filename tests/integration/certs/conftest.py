"""
A namespace with the manifests applied and nothing run yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.certs.site import CertsSite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simulator.controlplane import ControlPlane


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[CertsSite]:
    with CertsSite(control_plane, namespace, tmp_path) as made:
        try:
            made.install()
            yield made
        finally:
            made.remove()
