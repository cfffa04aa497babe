"""The two walks stay as short as they were."""

import json
import subprocess
import sys

import pytest

from gpufence.mode import read_mode
from tests.support.sources import ROOT
from tests.unit.house.walks import RECORDED, Walk, too_long, walk_of


def test_no_walk_has_grown_by_a_tenth() -> None:
    """
    A pod create and a verdict run through hardly more functions and modules than was recorded.
    """
    command = [sys.executable, "-m", "tests.unit.house", "walks"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    counted = {name: Walk(*numbers) for name, numbers in json.loads(result.stdout).items()}

    assert RECORDED.keys() == counted.keys()
    assert {} == {name: walk for name, walk in counted.items() if too_long(walk, RECORDED[name])}


def test_a_walk_counts_named_functions_of_ours_once() -> None:
    """Functions are counted once each, with their modules; other people's are not counted."""
    once = walk_of(lambda: read_mode("cap", "mode"))
    twice = walk_of(lambda: [read_mode("cap", "mode"), read_mode("evict", "mode")])

    assert once == twice
    assert once.functions >= 1
    assert Walk(0, 0) == walk_of(lambda: json.dumps({}))


@pytest.mark.parametrize(
    ("counted", "expected"),
    [(Walk(109, 10), False), (Walk(110, 10), True), (Walk(100, 11), True), (Walk(50, 5), False)],
)
def test_a_tenth_more_is_too_long(counted: Walk, *, expected: bool) -> None:
    """A walk is too long as soon as its functions or its modules are a tenth more."""
    assert expected == too_long(counted, Walk(100, 10))
