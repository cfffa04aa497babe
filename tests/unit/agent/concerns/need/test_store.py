"""What is stored of needs and read again, tick by tick."""

from collections.abc import Collection
from typing import Any

import pytest

from agent.concerns.need import NeedConcern
from agent.concerns.need.ledger import both, configmap, need_of, restored, stored_need, united
from agent.concerns.need.model import NO_NEED, NeedPolicy, StoredNeed
from agent.model.decision import ActResult, Answer
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.need import CardNeed, NeedDay, NeedKey, NodeNeed, OwnerNeed, read_need
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, pod
from tests.support.agent.node import NOTHING_STORED, ConcernedNode, running
from tests.unit.agent.concerns.need.test_ends import NODE, TODAY, TOMORROW, Book, key

YESTERDAY = "2026-11-18"
NOW = f"{TODAY}T05:06:07Z"
T4 = CardNeed("Tesla T4", 15 * GIB, 512 * MIB)


def need(*days: NeedDay, node: str = NODE) -> NodeNeed:
    return NodeNeed(node, (OwnerNeed(key(pod()), days),), (T4,))


def stored(*days: NeedDay, written: str = NOW) -> StoredNeed:
    return StoredNeed(need(*days), written)


def test_a_new_agent_forgets_nothing() -> None:
    """What was stored is there again, with the same pods counted once."""
    first = Book()
    first.look({"a": 2 * GIB}, pod(created=f"{TODAY}T01:00:00Z"))
    text = configmap(first.need, NOW, "")
    second = Book(stored_need(text, NODE, NOW))
    second.look({"a": GIB}, pod(created=f"{TODAY}T01:00:00Z"))

    assert first.days == second.days
    assert first.need.cards[0].model == second.need.cards[0].model


@pytest.mark.parametrize(
    ("created", "row", "expected"),
    [
        (f"{TODAY}T01:00:00Z", TODAY, (1, 1)),
        (f"{TODAY}T01:00:00Z", YESTERDAY, (1, 0)),
        (f"{TODAY}T06:00:00Z", TODAY, (2, 2)),
    ],
    ids=["counted today", "counted yesterday", "made since"],
)
def test_pods_are_counted_once_by_all_agents(
    created: str, row: str, expected: tuple[int, int]
) -> None:
    """
    A pod that is older than what was stored was counted, on the last day that is stored of it.
    """
    book = Book(stored(NeedDay(row, GIB, pods=1, started=1)))
    book.look({"a": GIB}, pod(created=created))

    assert expected == (book.days[-1].pods, book.days[-1].started)


def test_an_owner_that_was_not_stored_is_new() -> None:
    """An old pod of which nothing is stored had not held memory by then."""
    book = Book(stored(NeedDay(TODAY, GIB)))
    book.look({"b": GIB}, pod("b", created=f"{TODAY}T01:00:00Z"))
    rows = {owner.key.name: owner.days[-1] for owner in book.need.owners}

    assert (1, 1) == (rows["b"].pods, rows["b"].started)


def test_what_is_read_late_is_put_together() -> None:
    """What is found after the first look is joined, and changes nobody's being new."""
    book = Book()
    book.look({"a": GIB}, pod())
    book.ledger = restored(book.ledger, stored(NeedDay(YESTERDAY, 3 * GIB), NeedDay(TODAY, 1)))

    assert [3 * GIB, GIB] == [row.peak_bytes for row in book.days]
    assert ("", {}) == (book.ledger.restored_at, book.ledger.restored)


def test_two_agents_needs_together_are_the_larger() -> None:
    """Of two that both knew a node, each day's larger figures count."""
    one = need(NeedDay(YESTERDAY, GIB), NeedDay(TODAY, 2 * GIB, pods=1, held_seconds=5.0))
    other = need(NeedDay(TODAY, GIB, pods=3), NeedDay(TOMORROW, GIB))

    assert need(
        NeedDay(YESTERDAY, GIB),
        NeedDay(TODAY, 2 * GIB, pods=3, held_seconds=5.0),
        NeedDay(TOMORROW, GIB),
    ) == both(one, other)


FIGURES = {"processes": 4, "told_bytes": MIB, "limit_bytes": GIB, "out_of_memory_limit_bytes": 7}
FIGURES |= {"process_bytes": GIB, "started": 1, "shares": 2, "capped": True}


@pytest.mark.parametrize("split", [(), FIGURES, {"processes", "started", "shares"}], ids=len)
def test_of_two_figures_the_larger_counts(split: Collection[str]) -> None:
    """
    Every figure of a day is the larger one; use at an eviction is that at the larger limit, and a
    peak is the driver's only where none was measured as large.
    """
    figures: dict[str, Any] = FIGURES
    first = {name: value for name, value in figures.items() if name in split}
    second = {name: value for name, value in figures.items() if name not in split}
    one = NeedDay(TODAY, 2 * GIB, **first)._replace(
        driver_peak=True, evictions=2, evicted_bytes=3 * GIB, evicted_limit_bytes=GIB
    )
    other = NeedDay(TODAY, 2 * GIB, **second)._replace(
        evictions=1, evicted_bytes=2 * GIB, evicted_limit_bytes=2 * GIB
    )
    expected = NeedDay(TODAY, 2 * GIB, **figures)._replace(
        evictions=2, evicted_bytes=2 * GIB, evicted_limit_bytes=2 * GIB
    )

    assert expected == united(one, other) == united(other, one)
    assert united(one, one) is one


def test_the_object_says_whose_it_is_and_when() -> None:
    """Name and label find it, and it replaces the version that was read."""
    new, old = (configmap(need(NeedDay(TODAY, GIB)), NOW, version) for version in ("", "7"))

    assert {
        "name": f"{names.NEED_PREFIX}{NODE}",
        "labels": {
            "app.kubernetes.io/name": names.NEED_LABEL,
            "app.kubernetes.io/part-of": "gpufence",
        },
    } == new["metadata"]
    assert "7" == old["metadata"]["resourceVersion"]  # type: ignore[index]  # JSON
    assert NOW == new["data"][names.NEED_WRITTEN]  # type: ignore[index]  # JSON


def test_no_more_is_stored_than_is_kept() -> None:
    """
    Days that have not begun are not written, though the ledger has them until the clock is right.
    """
    whole = need(NeedDay(YESTERDAY, GIB), NeedDay(TODAY, GIB), NeedDay("2038-01-19", GIB))
    data: Any = configmap(whole, NOW, "")["data"]
    (owner,) = read_need(data[names.NEED_KEY]).owners

    assert [YESTERDAY, TODAY] == [row.day for row in owner.days]
    assert stored(NeedDay(TODAY, GIB)) == stored_need(object_of(), NODE, NOW)


def object_of(**data: object) -> dict[str, object]:
    whole: Any = configmap(need(NeedDay(TODAY, GIB)), NOW, "")
    return {**whole, "data": whole["data"] | data}


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"data": None},
        {"data": "x"},
        object_of(**{names.NEED_KEY: "{"}),
        object_of(**{names.NEED_KEY: '{"v":2}'}),
        object_of(**{names.NEED_KEY: "[" * 100_000}),
        object_of(**{names.NEED_KEY: '{"v":1,"node":"n2"}'}),
        object_of(**{names.NEED_KEY: '{"v":1,"node":"n1","owners":[{"days":[{}]}]}'}),
        object_of(**{names.NEED_WRITTEN: "yesterday"}),
        object_of(**{names.NEED_WRITTEN: ""}),
    ],
)
def test_what_no_agent_of_this_node_wrote_is_refused(written: dict[str, object]) -> None:
    """A forged or damaged object is an error of ours, and nothing else."""
    with pytest.raises(GpufenceError):
        stored_need(written, NODE, NOW)


def test_a_ledger_takes_no_more_than_it_keeps() -> None:
    """Owners without days are none."""
    ledger = restored(NO_NEED, StoredNeed(NodeNeed(NODE, (OwnerNeed(key(pod()), ()),))))

    assert ({}, {}) == (ledger.rows, ledger.restored)


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


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(Answer.ACCEPTED, (1, LIMIT + GIB, LIMIT)), (Answer.BLOCKED, (0, 0, 0))],
)
def test_an_eviction_is_remembered(answer: Answer, expected: tuple[int, int, int]) -> None:
    """A pod that was evicted has its use at that time and its limit; a refusal is none."""
    node = ConcernedNode()
    with running(node=node):
        node.api.result = ActResult(answer)
        node.add(pod("a"), LIMIT + GIB, 1)
        node.tick_until_acted()
        node.tick()
        (owner,) = need_of(node.need.ledger, "n1").owners

    row = owner.days[0]
    assert expected == (row.evictions, row.evicted_bytes, row.evicted_limit_bytes)


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
