"""
One whole page of metrics and one whole snapshot, reviewed like code.

After a change on purpose: `GPUFENCE_GOLDEN=write make test`, then read the difference.
"""

import json
from pathlib import Path

import pytest

from agent.metrics import page
from agent.snapshot_view import snapshot_of
from gpufence.snapshot import read_snapshot, write_snapshot
from tests.support.agent.node import ABOUT, ConcernedNode, blinded, busy_state
from tests.support.golden import assert_reviewed

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    node = ConcernedNode()
    state = blinded(busy_state(node))
    now = state.at + 0.5
    snapshot = snapshot_of(
        state, ABOUT, now, "2026-01-02T03:05:06Z", node.concerns.rows(now, current=True)
    )
    return {
        "metrics.txt": page(state, ABOUT, now, node.concerns.families(state.last, now)),
        "snapshot.json": json.dumps(json.loads(write_snapshot(snapshot)), indent=2) + "\n",
    }


@pytest.mark.parametrize("name", ["metrics.txt", "snapshot.json"])
def test_the_whole_text_is_as_reviewed(texts: dict[str, str], name: str) -> None:
    """The page and the snapshot say what the files beside this test say."""
    assert_reviewed(FOLDER / name, texts[name])


def test_the_plugin_reads_what_the_agent_writes(texts: dict[str, str]) -> None:
    """The snapshot survives its own codec."""
    snapshot = read_snapshot(texts["snapshot.json"])

    assert ["capped", "free", "good", "greedy", "quiet"] == sorted(
        pod.name for pod in snapshot.pods
    )
