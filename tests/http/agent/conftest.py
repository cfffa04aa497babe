"""A scripted cluster for every test of this folder."""

from collections.abc import Iterator

import pytest

from tests.http.agent.builders import script
from tests.support.servers import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        script(running)
        yield running
