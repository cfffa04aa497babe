"""A scripted server for every test of this folder."""

from collections.abc import Iterator

import pytest

from kube import Client
from tests.http.kube.builders import client_of
from tests.support.servers import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def client(server: ApiServer) -> Iterator[Client]:
    with client_of(server) as ready:
        yield ready
