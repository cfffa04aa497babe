"""
The pages of settings say what the programs read.
"""

from pathlib import Path

import pytest

from tests.support.metric_names import metric_names, metrics_in
from tests.support.sources import ROOT, shown
from tests.unit.house.pages import PAGES, with_tables


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_tables_are_those_of_the_code(page: Path) -> None:
    """
    Every generated table is as `make docs` writes it.
    """
    text = page.read_text(encoding="utf-8")

    assert with_tables(text) == text


def test_conformance_is_claimed_by_metrics_that_are_there() -> None:
    """
    Each metric that the page of conformance names is on a page of some program.
    """
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")

    assert set() == metrics_in(text) - metric_names()
