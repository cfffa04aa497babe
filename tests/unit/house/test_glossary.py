"""The glossary leads to what is there."""

import re

import pytest

from tests.support.sources import ROOT

LINES = [
    line
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| term ")
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split("|")[1].strip())
def test_a_term_leads_to_its_place(line: str) -> None:
    """Every line has a term, its meaning, and files or folders that exist."""
    _, term, meaning, where, _ = line.split("|")
    places = re.findall(r"`([^`]+)`", where)

    assert term.strip()
    assert meaning.strip()
    assert places
    assert [] == [place for place in places if not (ROOT / place).exists()]


def test_no_term_has_two_meanings() -> None:
    """A concept has one line."""
    terms = [line.split("|")[1].strip() for line in LINES]

    assert len(terms) == len(set(terms))
