"""One tick after the other: what is published, said, counted and lent."""

import math
import random
import threading
from dataclasses import replace

import pytest

from agent.loop import TickThread
from agent.loop.loop import MOST_NAMESPACES, OTHERS, count_violations, next_due
from agent.model.decision import Decision, Outcome, Verdict
from agent.model.memory import Bucket, Watch
from agent.model.pod import PodLimit, pods_on_node
from agent.model.sample import Trouble
from agent.model.state import CONTAINER_SECONDS, AgentState
from agent.nvml.faults import Code, trouble_of
from agent.nvml.protocol import NvmlFailure
from agent.snapshot_view import snapshot_of
from gpufence import names
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, on_card, pod
from tests.support.agent.node import ABOUT, QUICK, Clock, ConcernedNode, Node, running
from tests.support.observing import eventually

OVER = LIMIT + 300 * MIB


def test_the_node_is_told_its_cards_once() -> None:
    """Cards are published when first seen and when they change, not while they are unreadable."""
    node, blind = Node(), Node()
    node.tick(3)
    node.cards.driver = "590"
    node.tick(2)
    blind.cards.trouble = Trouble("no driver")
    blind.tick(2)

    assert ["580", "590"] == [item.driver for item in node.api.published]
    assert [] == blind.api.published


def test_a_lost_driver_is_told_after_a_while() -> None:
    """
    While NVML is lost, looks go on and the time of the last measurement stays; the Node gets an
    Event once that takes longer than a restart does.
    """
    node = Node()
    node.tick()
    measured = node.clock.now
    node.cards.trouble = Trouble("no driver")
    node.tick(10)
    early = list(node.api.reasons)
    node.tick(10)

    assert [] == early
    assert [names.NVML_UNAVAILABLE] == node.api.reasons
    assert (measured, measured + 20) == (node.loop.state.measured_at, node.loop.state.at)


def test_a_bug_in_a_tick_hurts_nobody() -> None:
    """A tick that raises is counted, acts on nobody, and the next one goes on."""
    with running() as node:
        node.add(pod("greedy"), OVER, 1)
        node.tick(2)
        node.cards.error = RuntimeError("a bug")
        node.tick(5)
        failed = node.loop.state.counts.failed
        node.cards.error = None
        node.tick()

    assert 5 == failed
    assert node.loop.state.at == node.clock.now
    assert [] == node.api.acts


def test_ticks_are_timed_and_those_left_out_counted() -> None:
    """Durations fall under their bounds; skipped ticks add up."""
    node = Node()
    node.cards.slow_seconds = 0.03
    node.tick()
    node.loop.tick(3)

    assert (2, 3) == (node.loop.state.counts.ticks.counts[5], node.loop.state.counts.skipped)


def test_a_violation_is_counted_once() -> None:
    """A pod that stays over its limit is one violation, one that comes back is another."""
    node = Node(replace(QUICK, hold_seconds=1000.0))
    node.add(pod("greedy"), OVER, 1)
    node.tick(10)
    once = dict(node.loop.state.counts.violations)
    node.cards.held[0][1] = GIB
    node.tick(60)
    node.cards.held[0][1] = OVER
    node.tick(2)

    assert {("team-a", "evict"): 1} == once
    assert {("team-a", "evict"): 2} == node.loop.state.counts.violations


def test_only_new_lists_are_looked_up() -> None:
    """The owners of a list that was not renewed are not asked for again."""
    node = Node()
    node.add(pod("good"), GIB, 1)
    node.tick()
    node.tick(seconds=0.0)

    assert [{1}, set()] == node.processes.asked


def test_events_that_are_too_many_are_counted() -> None:
    """What the allowance of a namespace holds back shows in the counts."""
    with running() as node:
        node.api.known = pods_on_node([])
        for number in range(60):
            node.add(pod(f"p{number}"), OVER, number + 1)
        node.tick(3)

        assert node.loop.state.counts.muted > 0


@pytest.mark.parametrize(
    ("now", "due", "skipped"), [(10.2, 11.0, 0), (9.9, 11.0, 0), (13.5, 14.0, 3)]
)
def test_ticks_keep_to_the_clock(now: float, due: float, skipped: int) -> None:
    """
    The next tick is due at the next multiple of the interval, and those in between are left out.
    """
    assert (due, skipped) == next_due(10.0, now, 1.0)


def test_nobody_can_know_when_the_next_look_comes() -> None:
    """Who is far over the limit for half of every second is seen as often as not."""
    dice, due, seen = random.Random(1), 0.0, 0
    for _ in range(1000):
        due, _ = next_due(due, due, 1.0, dice.random())
        seen += due % 1.0 < 0.5

    assert 400 < seen < 600


def test_the_loop_ticks_and_finishes_on_one_thread() -> None:
    """
    All of it happens on the same thread, ticks know how many were left out, `finish` comes last.
    """
    clock = Clock()
    calls: list[tuple[object, int]] = []

    def tick(skipped: int) -> float:
        calls.append((skipped, threading.get_ident()))
        clock.now += 0.025
        return math.inf

    finish = lambda: calls.append(("finish", threading.get_ident()))  # noqa: E731 - one line
    ticker = TickThread(tick, finish, 0.01, clock, chance=lambda: 0.0)
    ticker.start()
    assert eventually(lambda: len(calls) >= 3)
    ended = ticker.stop(20)

    assert ended
    assert [0, 2] == [what for what, _ in calls[:2]]
    assert "finish" == calls[-1][0]
    assert 1 == len({thread for _, thread in calls})


def test_a_loop_that_hangs_is_told_by_its_silence() -> None:
    """A minute beyond the interval a tick may take; stopping does not wait for one that hangs."""
    clock, gate = Clock(), threading.Event()

    def tick(_: int) -> float:
        gate.wait(20)
        return math.inf

    ticker = TickThread(tick, lambda: None, 1.0, clock)
    ticker.start()
    clock.now += 61
    healthy = ticker.trouble
    clock.now += 1
    stuck, ended = ticker.trouble, ticker.stop(0.01)
    gate.set()

    assert ("", False) == (healthy, ended)
    assert "no look at the cards has ended for 62 s: the agent's loop hangs" == stuck
    assert ticker.stop(20)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.UNKNOWN, True),
        (Code.OPERATING_SYSTEM, True),
        (Code.LIB_RM_VERSION_MISMATCH, True),
        (Code.DRIVER_NOT_LOADED, False),
        (Code.GPU_IS_LOST, False),
    ],
)
@pytest.mark.parametrize("measured", [0, 1])
def test_only_what_a_new_container_may_have_is_worth_a_restart(
    code: Code, measured: int, *, expected: bool
) -> None:
    """
    Lost devices and a replaced library are the container's; a driver that is away is the node's.
    The time without any card begins with the last one that could be read, or the start.
    """
    node = Node()
    node.tick(measured)
    since = node.clock.now if measured else node.loop.state.started_at
    node.cards.trouble = trouble_of(NvmlFailure(code, "nvmlInit"))
    node.tick(seconds=500.0)
    state = node.loop.state
    lost = state.lost_container(since + CONTAINER_SECONDS + 1.0)

    assert "" == state.lost_container(since + CONTAINER_SECONDS)
    assert expected is lost.startswith("no card can be read for 601 s")
    assert "" == AgentState(0.0, 0.0).lost_container(CONTAINER_SECONDS + 1.0)


def counted(before: dict[tuple[str, str], int], verdict: Verdict) -> dict[tuple[str, str], int]:
    decision = Decision(0.0, (verdict,), (), None, frozenset(), {})
    counts, running = count_violations(before, {}, decision)
    assert counts == count_violations(counts, running, decision)[0]
    return dict(counts)


def over(since: float | None = 5.0, **more: object) -> Verdict:
    item = pod(**more)  # type: ignore[arg-type] # any field
    watch = Watch(report=Bucket(1.0, since is not None, 5.0, since))
    return Verdict(item, Outcome.HOLDING, on_card(item, GIB, report_over=True, watch=watch))


FULL = {(f"n{number}", "evict"): 1 for number in range(MOST_NAMESPACES)}


@pytest.mark.parametrize(
    ("before", "verdict", "expected"),
    [
        ({}, over(mode=Mode.CAP), {("team-a", "cap"): 1}),
        (FULL, over(namespace="late"), FULL | {(OTHERS, "evict"): 1}),
        ({}, Verdict(pod(), Outcome.WITHIN, on_card(pod(), GIB)), {}),
        ({}, Verdict(pod(), Outcome.IDLE), {}),
        ({}, over(since=None), {}),
    ],
    ids=["new", "beyond the bound", "within", "without a card", "without a beginning"],
)
def test_a_new_violation_counts_once_for_its_namespace_and_mode(
    before: dict[tuple[str, str], int], verdict: Verdict, expected: dict[tuple[str, str], int]
) -> None:
    """Each counts by where it happened and on which rung, and not again while it lasts."""
    assert expected == counted(before, verdict)


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
