"""A desk for every test of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Chromium, Tab
from tests.support.plugin import Desk
from tests.support.servers import ApiServer


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ApiServer() as server:
        yield Desk(server, tmp_path)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as running:
        yield running


@pytest.fixture
def tab(browser: Chromium) -> Iterator[Tab]:
    with browser.tab() as opened:
        yield opened
