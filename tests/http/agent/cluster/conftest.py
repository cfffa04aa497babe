"""
A scripted cluster for every test of this folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.http.agent.cluster.builders import script
from tests.support.api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        script(running)
        yield running
