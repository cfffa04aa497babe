"""A desk for every test of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api_server import ApiServer
from tests.support.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ApiServer() as server:
        yield Desk(server, tmp_path)
