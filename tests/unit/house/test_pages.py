"""
The pages of settings say what the programs read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.house.pages import PAGES, with_tables

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_code(page: Path) -> None:
    """
    Every generated table is as `make docs` writes it.
    """
    text = page.read_text(encoding="utf-8")

    assert with_tables(text) == text
