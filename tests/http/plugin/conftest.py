"""A desk for every test of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plugin import Desk
from tests.support.servers import ApiServer


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ApiServer() as server:
        yield Desk(server, tmp_path)
