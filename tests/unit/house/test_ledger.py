"""The ledger's figures do not rise, nor do the walks grow."""

import json
import subprocess
import sys

import pytest

from gpufence.mode import read_mode
from tests.unit.house.ledger import BUDGETS, RECORDED, counted, spent
from tests.unit.house.walks import RECORDED as RECORDED_WALKS
from tests.unit.house.walks import Walk, too_long, walk_of
from tools import ROOT


def test_no_figure_has_grown() -> None:
    """Each figure of the ledger is at most what was recorded when somebody looked last."""
    now = counted()

    assert {} == {name: value for name, value in now.items() if value > RECORDED[name].most}


def test_no_shelf_is_over_its_budget() -> None:
    """A shelf that came after the house was counted keeps to the lines of code it was given."""
    assert {} == {shelf: lines for shelf, lines in spent().items() if lines > BUDGETS[shelf]}


def test_no_walk_has_grown() -> None:
    """A pod create, a verdict and their like run through no more functions than was recorded."""
    command = [sys.executable, "-m", "tests.unit.house", "walks"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    counted = {name: Walk(*numbers) for name, numbers in json.loads(result.stdout).items()}

    assert RECORDED_WALKS.keys() == counted.keys()
    assert {} == {
        name: walk for name, walk in counted.items() if too_long(walk, RECORDED_WALKS[name])
    }


def test_a_walk_counts_named_functions_of_ours_once() -> None:
    """Functions are counted once each, with their modules; other people's are not counted."""
    once = walk_of(lambda: read_mode("cap", "mode"))
    twice = walk_of(lambda: [read_mode("cap", "mode"), read_mode("evict", "mode")])

    assert once == twice
    assert once.functions >= 1
    assert Walk(0, 0) == walk_of(lambda: json.dumps({}))


@pytest.mark.parametrize(
    ("counted", "expected"),
    [(Walk(100, 10), False), (Walk(101, 10), True), (Walk(99, 11), True), (Walk(50, 5), False)],
)
def test_one_more_is_too_long(counted: Walk, *, expected: bool) -> None:
    """A walk is too long as soon as it has a function or a module more."""
    assert expected == too_long(counted, Walk(100, 10))
