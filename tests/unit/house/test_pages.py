"""
The pages of settings say what the programs read.
"""

from pathlib import Path

import pytest

from tests.support.sources import shown
from tests.unit.house.pages import PAGES, with_tables


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_tables_are_those_of_the_code(page: Path) -> None:
    """
    Every generated table is as `make docs` writes it.
    """
    text = page.read_text(encoding="utf-8")

    assert with_tables(text) == text
