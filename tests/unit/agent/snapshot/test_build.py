"""A moment in rows: what is known, what is not, and what is too old to be shown."""

from dataclasses import replace

import pytest

from agent.model.pod import Cap, pods_on_node
from agent.model.state import About, AgentState
from agent.model.use import ProcessUse
from agent.snapshot_view import snapshot_of
from gpufence.quantity import GIB
from tests.support.agent.builders import on_card, pod
from tests.support.agent.node import Node
from tests.support.agent.scene import ABOUT, busy_state

AT = "2026-01-02T03:05:06Z"


@pytest.fixture(scope="module")
def state() -> AgentState:
    return busy_state()


def test_before_the_first_look_nothing_is_known() -> None:
    """An agent that has just started says so, with nothing measured."""
    snapshot = snapshot_of(AgentState(1.0, 1.0), About("n1", "1", AT, 3.0), 2.0, AT)

    assert "the cards have not been looked at yet" == snapshot.trouble
    assert (None, "", False) == (snapshot.stale_seconds, snapshot.highest, snapshot.fresh)


def test_an_old_look_keeps_its_rows_and_loses_its_figures(state: AgentState) -> None:
    """When the loop hangs, cards and pods stay, and what they hold is unknown."""
    snapshot = snapshot_of(state, ABOUT, state.at + 100.0, AT)

    assert 100.0 == snapshot.stale_seconds
    assert "the cards have not been looked at for too long" == snapshot.trouble
    assert {None} == {card.used_bytes for card in snapshot.cards}
    assert {None} == {use.used_bytes for pod in snapshot.pods for use in pod.uses}
    assert () == snapshot.nobody


def test_the_kill_switch_is_told_once_it_was_read(state: AgentState) -> None:
    """The highest mode is empty until the cluster has been read."""
    status = ABOUT.cluster
    assert status is not None
    unread = replace(ABOUT, cluster=replace(status, synced=False))

    assert "evict" == snapshot_of(state, ABOUT, state.at, AT).highest
    assert "" == snapshot_of(state, unread, state.at, AT).highest


def test_pods_that_nobody_knows_have_no_row(state: AgentState) -> None:
    """Memory of a pod that is gone from the API server makes no row."""
    last = state.last
    assert last is not None
    empty = replace(last.observation, pods=pods_on_node([]))
    gone = replace(state, last=replace(last, observation=empty))

    assert () == snapshot_of(gone, ABOUT, state.at, AT).pods


@pytest.mark.parametrize(
    ("holding", "told", "expected"),
    [
        (("main", "main", "aside"), ("main", "aside", "idle"), 2 * GIB),
        (("main", "aside"), ("main",), None),
        ((), (), None),
    ],
)
def test_what_containers_were_told_is_added_up(
    holding: tuple[str, ...], told: tuple[str, ...], expected: int | None
) -> None:
    """
    Each container that holds memory counts once, and without a word to every one there is no sum.
    """
    processes = [ProcessUse(1, 1, None, "uid-a", name) for name in holding]
    item = pod(caps=dict.fromkeys(told, Cap(GIB, 1)))

    assert expected == on_card(item, 1, *processes).allowance_bytes


def test_a_fenced_pod_without_memory_has_a_row_without_uses() -> None:
    """Who is fenced and holds nothing is listed all the same."""
    node = Node()
    node.api.known = pods_on_node([pod("idle")])
    node.tick()
    (row,) = snapshot_of(node.loop.state, ABOUT, node.clock.now, AT).pods

    assert ("idle", ()) == (row.name, row.uses)
