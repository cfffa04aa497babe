"""How pods ended, recorded tick by tick, and what the page shows of pods that are there."""

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from agent.concerns.history.concern import PAGE, HistoryConcern
from agent.concerns.history.record import (
    CardMoment,
    PastUse,
    card_moment,
    configmap,
    evicted_record,
    running_record,
    stored_records,
)
from agent.concerns.history.ring import MOST_RINGS, Rings, peak_of
from agent.model.decision import ActResult, Answer, Outcome, Verdict
from agent.model.pod import PodLimit
from agent.model.sample import Trouble
from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.quantity import GIB, MIB
from gpufence.records import MOST_MOMENTS, Neighbour, NodeRecords, Threshold, read_records
from tests.support.agent.builders import CARDS, LIMIT, controller, pod
from tests.support.agent.node import QUICK, blinded, running, timestamp
from tests.support.observing import quiet_seconds
from tests.unit.agent.concerns.test_at_the_cap import NODE, RecordedNode

MOST_SECONDS = 0.001  # a thousandth of the second from one entry to the next


@contextmanager
def after_an_eviction(answer: Answer = Answer.ACCEPTED) -> Iterator[RecordedNode]:
    """Have one pod over its limit beside another that is short of what it was promised."""
    node = RecordedNode()
    with running(node=node):
        node.api.result = ActResult(answer)
        labels = {"pod-template-hash": "7f9c"}
        owner = controller(name="web-7f9c")
        node.add(pod("quiet", assigned=frozenset({"GPU-0"})), GIB, 2)
        node.add(pod("greedy", controller=owner, labels=labels), 2 * GIB, 1)
        node.tick(5)
        node.cards.held[0][1] = LIMIT + GIB
        node.tick_until_acted()
        del node.cards.held[0][1]  # its processes have ended by the time that the answer is seen
        node.tick()
        yield node


def test_an_eviction_is_recorded() -> None:
    """The record says whose the pod was, what it held, when it passed what, and what would do."""
    with after_an_eviction() as node:
        (record,) = node.records()

    assert ("evicted", "greedy", "Deployment/web", "ReplicaSet/web-7f9c") == (
        record.kind,
        record.name,
        record.owner,
        record.controller,
    )
    assert (LIMIT + GIB, LIMIT + GIB, LIMIT) == (
        record.used_bytes,
        record.peak_bytes,
        record.limit_bytes,
    )
    assert LIMIT < (record.enough_bytes or 0)
    assert (2048, LIMIT // MIB) == (record.course[0].used, record.course[0].limit)
    assert [("limit", LIMIT), ("evict", LIMIT + 256 * MIB)] == [
        (each.name, each.bytes) for each in record.thresholds
    ]
    assert {QUICK.hold_seconds} == {each.passed_seconds for each in record.thresholds}


def test_neighbours_have_amounts_and_no_names() -> None:
    """What others were short of is said without a word of whose it is."""
    with after_an_eviction() as node:
        (record,) = node.records()
        page = node.concerns.pages()[PAGE]()
    with after_an_eviction(Answer.BLOCKED) as refused:
        found = refused.records()

    assert [(GIB, LIMIT)] == [tuple(each) for each in record.neighbours]
    assert 2 * GIB == record.owed_bytes
    assert record.free_bytes is not None
    assert "quiet" not in page
    assert () == found  # a pod whose eviction was refused has not ended


def test_a_record_is_stored_and_found_again() -> None:
    """It is stored once what is there is known, and the next agent begins with it."""
    with after_an_eviction() as node:
        node.tick(5)
        (stored,) = node.kept.stored
        node.concerns.stop()
    second = RecordedNode()
    second.kept.found = None
    second.tick()
    unknown = second.records()
    second.kept.found = stored
    second.tick(10)

    assert 1 == len(node.kept.stored)
    assert () == unknown
    assert stored.records == second.records()
    assert [] == second.kept.stored


def test_without_a_cluster_records_are_only_shown() -> None:
    """An agent that stores nothing runs on."""
    history = HistoryConcern(QUICK, NODE, None, lambda: 0.0, timestamp)
    history.start()
    history.stop()

    assert () == read_records(history.pages()[f"{PAGE}?only=running"]()).records


def test_a_pod_that_is_there_has_its_last_minutes() -> None:
    """What is shown of it so far has as many moments as a record, and no end."""
    node = RecordedNode()
    node.add(pod("a"), GIB, 1)
    node.tick(700)
    (record,) = node.records("running")

    assert ("running", "a", None) == (record.kind, record.name, record.enough_bytes)
    assert MOST_MOMENTS >= len(record.course) > MOST_MOMENTS / 2
    assert 590 <= record.course[0].age <= 600
    assert Threshold("limit", LIMIT) == record.thresholds[0]


def test_a_pod_that_lets_go_holds_nothing() -> None:
    """Memory that is given back is zero in the course, and unknown while nothing can be read."""
    node = RecordedNode()
    node.add(pod("a"), GIB, 1)
    node.tick(2)
    del node.cards.held[0][1]
    node.tick(2)
    node.add(pod("a"), 2 * GIB, 1)
    node.tick()
    node.tick(seconds=0.5)  # too soon to be entered
    (record,) = node.records("running")

    assert [1024, 1024, 0, 0, 2048] == [moment.used for moment in record.course]


def test_no_more_pods_are_followed_than_there_is_room_for() -> None:
    """
    A crowd beyond the bound is not followed; pods that left make room, and are forgotten after ten
    minutes.
    """
    node = RecordedNode()
    for number in range(MOST_RINGS + 2):
        node.add(pod(f"p{number}"), MIB, number + 1)
    node.tick(2)
    full = len(node.history._rings)
    node.api.known = type(node.api.known)({}, {}, {})
    node.cards.held[0].clear()
    node.tick(10)
    node.add(pod("late"), MIB, 5000)
    node.tick()
    late = [record.name for record in node.records("running")]
    crowded = len(node.history._rings)
    node.tick(610)

    assert (MOST_RINGS, MOST_RINGS, 1) == (full, crowded, len(node.history._rings))
    assert ["late"] == late


def test_a_node_of_110_pods_costs_little() -> None:
    """110 pods take at most 4 MiB, and a look at them at most a thousandth of its second."""
    node = RecordedNode()
    for number in range(110):
        node.add(pod(f"p{number}"), GIB, number + 1)
    node.tick()
    tick = node.loop.state.last
    assert tick is not None
    rings = Rings(QUICK)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    rings.look(tick)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    pace = replace(tick.decision, acts=tick.decision.verdicts[:1])  # every look is entered

    assert 4 * 2**20 > taken
    assert MOST_SECONDS > quiet_seconds(
        rings.look, lambda: replace(tick, decision=pace), enough=MOST_SECONDS
    )


def test_what_cannot_be_read_is_unknown() -> None:
    """While nothing can be listed use is unknown, which is neither zero nor within a limit."""
    node = RecordedNode()
    node.add(pod("a"), LIMIT + GIB, 1)
    node.add(pod("b", limit=None), GIB, 2)
    node.add(pod("c"), MIB, 3)
    node.tick()
    del node.cards.held[0][3]
    node.cards.trouble = Trouble("it hangs")
    node.tick()
    a, b, c = node.records("running")

    assert [[4096, None], [1024, None], [1, None]] == [
        [moment.used for moment in record.course] for record in (a, b, c)
    ]
    assert 1.0 == a.thresholds[0].passed_seconds
    assert ((), None, None) == (b.thresholds, b.course[0].limit, b.enough_bytes)


def test_a_card_that_says_nothing_has_no_free_memory_to_show() -> None:
    """Where the card's own account cannot be read, what is free of it is unknown."""
    node = RecordedNode()
    node.add(pod("a"), GIB, 1)
    node.add(pod("b"), GIB, 2, card=1)
    node.tick()
    last = blinded(node.loop.state).last
    assert last is not None
    verdicts = [each for each in last.decision.verdicts if each.pod.name == "b"]
    rings = Rings(QUICK)
    rings.look(last)
    (moment,) = rings.moments(("uid-b", verdicts[0].uuid), node.clock.now)
    past = PastUse([moment], node.clock.now, "now")

    assert (GIB // 1024, None) == (moment.used, moment.free)
    assert card_moment(verdicts[0], last).free_bytes is None
    assert None is evicted_record(Verdict(verdicts[0].pod, Outcome.IDLE), past, CardMoment())
    assert None is running_record(Verdict(verdicts[0].pod, Outcome.IDLE), past, CardMoment())
    nothing = running_record(verdicts[0], PastUse([], node.clock.now, "now"), CardMoment())
    assert nothing is not None
    assert ((Threshold("limit", LIMIT),), ()) == (nothing.thresholds, nothing.course)
    assert None is peak_of([moment._replace(used=None)])


def test_a_pod_that_waits_for_its_promise_is_a_neighbour() -> None:
    """A pod that was given the card and holds nothing there yet is short of all of its promise."""
    node = RecordedNode()
    node.add(pod("a"), GIB, 1)
    node.claim(pod("b", assigned=frozenset({CARDS[0].uuid})))
    node.claim(pod("c", enforced=False, assigned=frozenset({CARDS[0].uuid})))
    node.tick()
    (record,) = node.records("running")

    assert [Neighbour(0, LIMIT)] == [*record.neighbours]


@pytest.mark.parametrize(
    "data",
    [
        None,
        "x",
        {},
        {names.WHY_KEY: "{"},
        {names.WHY_KEY: '{"v":2}'},
        {names.WHY_KEY: '{"v":1,"node":"n2"}'},
        {names.WHY_KEY: '{"v":1,"node":"n1","records":[{"kind":1}]}'},
        {names.WHY_KEY: '{"v":1,"node":"n1","records":[{"course":[[1]]}]}'},
        {names.WHY_KEY: '{"v":1,"node":"n1","records":[{"course":[[1,"x",1,1]]}]}'},
    ],
)
def test_what_no_agent_of_this_node_wrote_is_refused(data: object) -> None:
    """A forged or damaged object is an error of ours, and nothing else."""
    with pytest.raises(GpufenceError):
        stored_records({"data": data}, NODE)


def test_what_was_stored_reads_back() -> None:
    """The object gives back what was put into it, and says whose it is."""
    with after_an_eviction() as node:
        known = NodeRecords(NODE, "2026-01-02", node.records())
    made: Any = configmap(known, "7")

    assert known == stored_records(made, NODE)
    assert ("gpufence-why-n1", "7") == (
        made["metadata"]["name"],
        made["metadata"]["resourceVersion"],
    )


def test_the_page_is_one_document() -> None:
    """The page says whose records these are, and since when its agent runs."""
    node = RecordedNode()
    page = json.loads(node.concerns.pages()[PAGE]())

    assert {"v": 1, "node": NODE, "since": "1970-01-01T00:16:40Z", "records": []} == page


def test_the_request_of_a_pod_that_may_borrow_is_recorded() -> None:
    """It is left out where it is the limit, and an eviction within the limit was for a loan."""
    limits = {CARDS[0].uuid: PodLimit(LIMIT, share_bytes=GIB)}
    node = RecordedNode()
    with running(node=node):
        node.add(pod("borrower", limits=limits), 2 * GIB, 1)
        node.add(pod("other"), GIB, 2)
        node.tick(5)
        other, borrower = sorted(node.records("running"), key=lambda each: each.name != "other")

    assert (None, GIB) == (other.request_bytes, borrower.request_bytes)
    assert not borrower.recalled
    assert borrower._replace(kind="evicted").recalled
