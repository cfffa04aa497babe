"""One authority for the folder, one webhook for those tests that do not harm it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.authority import Authority, write_files
from tests.support.webhook_site import Webhook


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def webhook(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """Lend a webhook that serves; whoever ends it or changes its certificate starts their own."""
    folder = tmp_path_factory.mktemp("tls")
    write_files(folder, authority.leaf())
    with Webhook(folder, authority.client_context()) as running:
        yield running


@pytest.fixture
def tls_dir(authority: Authority, tmp_path: Path) -> Path:
    """Return a folder with a good pair."""
    write_files(tmp_path, authority.leaf())
    return tmp_path
