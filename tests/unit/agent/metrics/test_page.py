"""The page of metrics: well-formed, honest about what is unknown, and bounded."""

from dataclasses import replace

import pytest

from agent.metrics import page
from agent.model.state import About, AgentState
from tests.support.agent.builders import pod
from tests.support.agent.node import Node
from tests.support.agent.scene import ABOUT, busy_state
from tests.unit.agent.metrics.lint import problems


@pytest.fixture(scope="module")
def state() -> AgentState:
    return busy_state()


def lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_a_full_page_passes_the_lint(state: AgentState) -> None:
    """Every family has help, type and unit, and no line is there twice."""
    assert [] == list(problems(page(state, ABOUT, state.at)))


def test_an_empty_page_passes_the_lint() -> None:
    """Before the first look and without a cluster the page is well-formed, too."""
    first = AgentState(10.0, 10.0)
    text = page(first, About("n1", "1", "2026-01-02T03:04:05Z", 3.0), 11.0)

    assert [] == list(problems(text))
    assert [] == lines(text, "gpufence_sample_age_seconds")
    assert [] == lines(text, "gpufence_cluster")


@pytest.mark.parametrize(
    "broken",
    [
        "gpufence_a_bytes 1",
        "# HELP gpufence_a_bytes One.\n# TYPE gpufence_b_bytes gauge\n",
        "# HELP gpufence_a_bytes one\n",
        "# HELP other_bytes One.\n# TYPE other_bytes gauge\n",
        "# HELP gpufence_a One.\n# TYPE gpufence_a gauge\n",
        "# HELP gpufence_a_bytes One.\n# TYPE gpufence_a_bytes counter\n",
        "# HELP gpufence_a_bytes One.\n# TYPE gpufence_a_bytes gauge\ngpufence_a_bytes one\n",
        (
            "# HELP gpufence_a_bytes One.\n# TYPE gpufence_a_bytes gauge\n"
            "gpufence_a_bytes 1\ngpufence_a_bytes 1\n"
        ),
        'gpufence_a_bytes{x="a"b"} 1\n',
    ],
)
def test_the_lint_finds_what_it_is_for(broken: str) -> None:
    """Each mistake that the lint exists for is found."""
    assert [] != list(problems(broken))


def test_an_old_look_is_not_shown_as_new(state: AgentState) -> None:
    """When the loop hangs, figures vanish and the age grows; what was counted stays."""
    text = page(state, ABOUT, state.at + 100.0)

    assert [] == lines(text, "gpufence_pod_")
    assert [] == lines(text, "gpufence_card_")
    assert [] == lines(text, "gpufence_brake")
    assert ["gpufence_sample_age_seconds 100"] == lines(text, "gpufence_sample_age_seconds")
    assert 1 == len(lines(text, 'gpufence_evictions_total{action="evict",result="accepted"} 1'))


def test_a_pod_that_is_gone_has_no_lines() -> None:
    """Memory of a pod that the API server does not know any more belongs to nobody on the page."""
    node = Node()
    node.add(pod("gone"), 1 << 30, 1)
    node.tick()
    state = node.loop.state
    assert state.last is not None
    seen = state.last.observation
    empty = replace(seen, pods=replace(seen.pods, by_uid={}))
    look = replace(state.last, observation=empty)

    assert [] == lines(page(replace(state, last=look), ABOUT, state.at), "gpufence_pod_")
