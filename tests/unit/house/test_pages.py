"""The pages of settings say what the programs read."""

import re
from pathlib import Path

import pytest

from tests.support.metric_names import metric_names, metrics_in
from tests.support.sources import ROOT, shown
from tools.pages import PAGES, with_tables
from tools.picture import PICTURE, RECORD, drawn, recorded


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_tables_are_those_of_the_code(page: Path) -> None:
    """Every generated table is as `make docs` writes it."""
    text = page.read_text(encoding="utf-8")

    assert with_tables(text) == text


def test_conformance_is_claimed_by_metrics_that_are_there() -> None:
    """Each metric that the page of conformance names is on a page of some program."""
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")

    assert set() == metrics_in(text) - metric_names()


def test_the_picture_is_made_from_a_run() -> None:
    """What the README shows first is drawn from what the demo printed, and from nothing else."""
    record = recorded(RECORD.read_text(encoding="utf-8"))

    assert drawn(record) == PICTURE.read_text(encoding="utf-8")
    assert record.looks[0].greedy < record.limit < record.looks[-1].greedy


def test_a_record_that_was_cut_is_no_record() -> None:
    """A picture is not made of half a run."""
    with pytest.raises(ValueError, match="keep a whole run in it"):
        recorded("    [###===   ]  3690 of 15360 MiB  within 0 s\n")


def test_the_tour_quotes_the_run() -> None:
    """What the tour says the demo prints stands in the record, line by line."""
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    quoted = tour.split("<!-- not run: a part of demo.txt -->\n```console\n")[1].split("```")[0]

    assert set() == set(quoted.splitlines()) - set(RECORD.read_text(encoding="utf-8").splitlines())


def test_the_first_view_is_one_screen() -> None:
    """What it is, the picture, two commands and the ladder come first, in less than sixty lines."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    first = lines[: lines.index("## On a real cluster")]

    assert {"docs/demo.svg", "make demo", "## The ladder"} == {
        text
        for text in ("docs/demo.svg", "make demo", "## The ladder")
        if any(text in line for line in first)
    }
    assert 60 > len(first)


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_somewhere(page: Path) -> None:
    """Every file that a page links to is there."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [] == [link for link in links if not (page.parent / link).exists()]
