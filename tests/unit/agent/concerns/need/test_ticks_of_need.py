"""What a tick makes of needs: entered, stored at its pace and at the end."""

import pytest

from agent.concerns.need import NeedConcern
from agent.concerns.need.ledger import need_of
from agent.concerns.need.model import NeedPolicy, StoredNeed
from agent.model.decision import ActResult, Answer
from gpufence.need import NeedDay, NeedKey, NodeNeed, OwnerNeed
from gpufence.quantity import GIB
from tests.support.agent.builders import LIMIT, pod
from tests.support.agent.concerned import NOTHING_STORED, ConcernedNode
from tests.support.agent.node import running

KEY = NeedKey("team-a", "Pod", "a", "main", "Tesla T4")
PACE = NeedPolicy().write_seconds


def peaks(need: NodeNeed) -> dict[str, list[int]]:
    return {owner.key.name: [day.peak_bytes // GIB for day in owner.days] for owner in need.owners}


def known(node: ConcernedNode) -> dict[str, list[int]]:
    return peaks(need_of(node.need.ledger, "n1"))


def test_what_was_needed_is_stored_at_its_pace() -> None:
    """It is stored once in so many seconds while it changes, and not while nobody holds memory."""
    node = ConcernedNode()
    node.add(pod("a"), GIB, 1)
    node.tick(int(2 * PACE))
    while_held = len(node.stored.needs)
    del node.cards.held[0][1]
    node.tick(int(2 * PACE))

    assert 2 == while_held
    assert 3 == len(node.stored.needs)
    assert {"a": [1]} == known(node) == peaks(node.stored.needs[-1])


def test_nothing_is_entered_before_what_is_stored_has_been_read() -> None:
    """Until then nobody can tell who was counted, and there is nothing to store at the end."""
    node = ConcernedNode()
    node.stored.found = None
    node.add(pod("a"), GIB, 1)
    node.tick(3)
    node.concerns.stop()
    before = known(node)
    node.stored.found = NOTHING_STORED
    node.tick()

    assert ({}, []) == (before, node.stored.needs)
    assert {"a": [1]} == known(node)


def test_what_is_stored_is_taken_over() -> None:
    """Days of an earlier agent stand beside those of this one, and are no reason to write."""
    old = OwnerNeed(KEY._replace(name="old"), (NeedDay("2026-01-01", 3 * GIB),))
    node = ConcernedNode()
    node.stored.found = StoredNeed(NodeNeed("n1", (old,)), "2026-01-01T00:00:00Z")
    node.tick(int(2 * PACE))
    quiet = list(node.stored.needs)
    node.add(pod("a"), GIB, 1)
    node.tick()
    node.stored.found = StoredNeed(NodeNeed("n1", (old._replace(key=KEY),)))
    node.tick()

    assert [] == quiet
    assert {"old": [3], "a": [3, 1]} == known(node)


def test_the_end_stores_what_is_new() -> None:
    """What was entered since it was stored last is stored at the end, once."""
    node = ConcernedNode()
    node.add(pod("a"), GIB, 1)
    node.tick()
    node.concerns.stop()
    node.concerns.stop()

    assert [{"a": [1]}] == [peaks(need) for need in node.stored.needs]


def test_an_eviction_is_remembered() -> None:
    """Who was evicted has the use at that time and his limit."""
    node = ConcernedNode()
    with running(node=node):
        node.add(pod("a"), LIMIT + GIB, 1)
        node.tick_until_acted()
        node.tick()
        (owner,) = need_of(node.need.ledger, "n1").owners

    row = owner.days[0]
    assert (1, LIMIT + GIB, LIMIT) == (row.evictions, row.evicted_bytes, row.evicted_limit_bytes)


def test_an_eviction_that_was_refused_is_not() -> None:
    """Who did not go was not evicted."""
    node = ConcernedNode()
    with running(node=node):
        node.api.result = ActResult(Answer.BLOCKED)
        node.add(pod("a"), LIMIT + GIB, 1)
        node.tick_until_acted()
        node.tick()
        (owner,) = need_of(node.need.ledger, "n1").owners

    assert 0 == owner.days[0].evictions


def test_a_bug_in_it_harms_no_fence(caplog: pytest.LogCaptureFixture) -> None:
    """A look that cannot be entered is logged, and the tick goes on with what was known."""
    node = ConcernedNode()
    node.add(pod("a"), GIB, 1)
    node.tick()
    node.stored.found = StoredNeed(None)  # type: ignore[arg-type]  # a bug
    node.tick()

    assert "need: look failed" in caplog.text
    assert 0 == node.loop.state.counts.failed
    assert {"a": [1]} == known(node)


def test_agents_that_start_together_do_not_write_together() -> None:
    """The first pace of each node is shorter by another part."""
    node = ConcernedNode()
    watches = [
        NeedConcern(NeedPolicy(), name, node.stored, node.clock, lambda: "2026-01-02T00:00:00Z")
        for name in ("n1", "n2", "n3", "n4")
    ]
    firsts = {watch._kept_at for watch in watches}

    assert 4 == len(firsts)
    assert all(node.clock.now - PACE <= at <= node.clock.now for at in firsts)
