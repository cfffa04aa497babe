"""From what pods do to what they lend, and from there to the Events of both: the whole loop."""

from dataclasses import replace

from agent.model.decision import Outcome
from agent.model.pod import PodLimit
from agent.snapshot_view import snapshot_of
from gpufence import names
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.node import ABOUT, QUICK, ConcernedNode, running

POLICY = replace(QUICK, lend_after_seconds=20.0, give_back_seconds=4.0)
BORROWER = pod("a", limits={CARDS[0].uuid: PodLimit(13 * GIB, share_bytes=3 * GIB)})
LENDER = pod("b", limit=6 * GIB, namespace="team-b")


def test_an_idle_pod_lends_until_it_works() -> None:
    """What activity finds idle lends; once it works, the borrower is asked, and goes in time."""
    with running(node=ConcernedNode(POLICY)) as node:
        node.cards.workers = {0: {1}}
        node.add(BORROWER, GIB, 1)
        node.add(LENDER, GIB, 2)
        node.tick(30)
        node.cards.held[0][1] = 12 * GIB
        node.tick(10)
        state, acted = node.loop.state, [*node.api.acts]
        rows = {row.name: row.uses[0] for row in snapshot_of(state, ABOUT, state.at, "").pods}
        node.cards.workers = {0: {1, 2}}
        node.tick(2)
        lent = snapshot_of(node.loop.state, ABOUT, node.loop.state.at, "").pods[1].uses[0].lends
        node.tick_until_acted()
        del node.cards.held[0][1]
        node.tick(2)
        told = [item.notice for item in node.api.written]

    assert [] == acted
    assert (str(Outcome.BORROWING), 9 * GIB) == (rows["a"].outcome, rows["a"].borrowed_bytes)
    assert (True, 5 * GIB, False) == (rows["b"].lends, rows["b"].owed_bytes, lent)
    assert ["a"] == [item.pod.name for item in node.api.acts]
    assert [
        (names.RECALLED, "a"),
        (names.LENT, "b"),
        (names.EVICTED, "a"),
        (names.LENT, "b"),
    ] == [(item.reason, item.regarding.name) for item in told if "GPUMemory" in item.reason]
