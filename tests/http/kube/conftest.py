"""
A scripted server for every test of this folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.http.kube.builders import client_of
from tests.support.api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kube import Client


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def client(server: ApiServer) -> Iterator[Client]:
    with client_of(server) as ready:
        yield ready
