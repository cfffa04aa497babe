"""The page of metrics with all concerns."""

import re

from agent.metrics import page
from tests.support.agent.concerned import ConcernedNode
from tests.support.agent.scene import ABOUT, busy_state
from tests.support.sources import ROOT
from tests.unit.agent.metrics.lint import problems


def lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_a_full_page_passes_the_lint() -> None:
    """Every family has help, type and unit, and no line is there twice."""
    node = ConcernedNode()
    state = busy_state(node)
    more = node.concerns.families(state.last, state.at)

    assert [] == list(problems(page(state, ABOUT, state.at, more)))


def test_every_metric_is_in_the_documentation() -> None:
    """The page of settings explains each metric, and no other."""
    node = ConcernedNode()
    state = busy_state(node)
    more = node.concerns.families(state.last, state.at)
    text = (ROOT / "docs" / "settings-agent.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(gpufence_[a-z_]+)` \|", text, re.MULTILINE)
    shown = [line.split()[2] for line in lines(page(state, ABOUT, state.at, more), "# TYPE ")]

    assert shown == documented
