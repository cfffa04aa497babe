"""Acts: what is handed over, how it ends, and what slow lists do to it."""

from dataclasses import replace

import pytest

from agent.model.decision import Action, ActResult, Answer, Brake, Outcome, Verdict
from agent.model.pod import pods_on_node
from agent.model.policy import EvictionPolicy
from gpufence import names
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.node import QUICK, ApiServer, Clock, Node, WatchedWorker, running
from tests.support.observing import eventually

OVER = LIMIT + 300 * MIB
EVICT = ("evict", "accepted")


def violated(node: Node) -> Node:
    """Put a violator and an innocent on the first card."""
    node.add(pod("greedy"), OVER, 1)
    node.add(pod("good"), GIB, 2)
    return node


@pytest.mark.parametrize(
    ("result", "error", "counted", "reason"),
    [
        (ActResult(Answer.ACCEPTED), None, "accepted", names.EVICTED),
        (ActResult(Answer.BLOCKED, detail="budget web"), None, "blocked", names.EVICTION_BLOCKED),
        (ActResult(Answer.ACCEPTED), RuntimeError("a bug"), "failed", names.EVICTION_FAILED),
    ],
)
def test_a_violator_is_evicted_once_its_time_is_up(
    result: ActResult, error: Exception | None, counted: str, reason: str
) -> None:
    """
    The violator alone, after a second look at its card in the same tick; the next tick remembers
    everywhere how that ended, and a bug in acting is a failure like others.
    """
    with running() as node:
        node.api.result, node.api.error = result, error
        violated(node).tick_until_acted()
        asked, ticks = list(node.cards.asked), node.loop.state.counts.ticks.counts[0]
        node.tick()

    assert ["greedy"] == [item.pod.name for item in node.api.acts]
    assert frozenset({CARDS[0].uuid}) == asked[-1]
    assert len(asked) == ticks + 1
    assert 1 == node.loop.state.counts.evictions["evict", counted]
    assert reason in node.api.reasons


def test_who_gave_the_memory_back_is_spared() -> None:
    """A pod that is within its limit at the second look is not evicted."""
    with running() as node:
        violated(node).tick(2)
        looks = len(node.cards.asked)
        node.cards.slow_seconds = 0.01  # the second list is a later one
        node.cards.held = _LettingGo(node, looks + 1)
        node.tick()

    assert [] == node.api.acts
    assert Outcome.EVICT in [item.outcome for item in _verdicts(node)]


class _LettingGo(dict[int, dict[int, int | None]]):
    """What is held until the given look, and little afterwards."""

    def __init__(self, node: Node, look: int) -> None:
        super().__init__(node.cards.held)
        self._node = node
        self._look = look

    def __getitem__(self, card: int) -> dict[int, int | None]:
        if len(self._node.cards.asked) > self._look:
            return {1: GIB, 2: GIB}
        return super().__getitem__(card)


def test_a_slow_api_delays_no_look_and_no_other_card() -> None:
    """
    While the API server takes its time, ticks go on, no second act is begun on the card, and the
    violator of another card is evicted at once.
    """
    with running() as node:
        node.api.open.clear()
        violated(node).tick(4)
        assert eventually(lambda: len(node.api.acts) == 1)
        node.tick(10)
        at = node.loop.state.at
        alone = [item.pod.name for item in node.worker.outstanding]
        node.add(pod("other"), OVER, 3, card=1)
        node.tick(4)
        assert eventually(lambda: len(node.api.acts) == 2)
        both = [item.pod.name for item in node.worker.outstanding]
        node.api.open.set()
        assert eventually(lambda: node.worker.answered)
        node.tick()

    assert at == node.loop.state.at - 5
    assert (["greedy"], ["greedy", "other"]) == (alone, both)
    assert 1 <= node.loop.state.counts.evictions[EVICT]


def test_acts_without_an_answer_count_against_the_caps() -> None:
    """No more evictions are under way at once than the caps let begin in a minute."""
    with running(replace(QUICK, node_evictions_per_minute=3)) as node:
        node.api.open.clear()
        for card in range(5):
            node.add(pod(f"p{card}", namespace=f"n{card % 2}"), OVER, card + 1, card=card)
        node.tick(30)
        assert eventually(lambda: len(node.api.acts) == 3)
        kept = [item.brake for item in _verdicts(node) if item.outcome is Outcome.BRAKED]

    assert [Brake.NODE_CAP, Brake.NODE_CAP] == kept


def test_nobody_else_goes_on_a_card_before_the_answer() -> None:
    """A second violator on any card of a pod that is being evicted waits for the answer."""
    with running() as node:
        node.api.open.clear()
        node.add(pod("greedy"), OVER + GIB, 1)
        node.add(pod("next"), OVER, 2)
        node.tick(10)
        outcomes = {item.pod.name: item.outcome for item in _verdicts(node)}

    assert {"greedy": Outcome.EVICT, "next": Outcome.QUEUED} == outcomes
    assert ["greedy"] == [item.pod.name for item in node.api.acts]


def test_a_refusal_is_waited_out() -> None:
    """After a budget's refusal the next try comes after the back-off."""
    with running() as node:
        node.api.result = ActResult(Answer.BLOCKED, detail="budget web")
        violated(node).tick_until_acted()
        node.tick(3)
        tries = len(node.api.acts)
        node.tick_until_acted(2)

    assert 1 == tries


def test_a_stuck_pod_is_killed_where_that_is_enabled() -> None:
    """A violator that has been terminating for too long is killed, not evicted."""
    policy = replace(QUICK, last_resort_kill=True, termination_seconds=1.0)
    with running(policy) as node:
        node.add(pod("stuck", terminating=True), OVER, 1)
        node.tick_until_acted()

    assert [Action.KILL] == [item.action for item in node.killed]
    assert [] == node.api.acts


def test_an_act_that_comes_too_late_is_cancelled() -> None:
    """An act that had to wait for another one for too long is not carried out."""
    clock, api = Clock(), ApiServer()
    worker = WatchedWorker(api.carry_out, api.carry_out, clock, 3.0, most_threads=1)
    acts = [Verdict(pod(name), Outcome.EVICT, action=Action.EVICT) for name in ("a", "b")]
    worker.take(acts)
    assert eventually(lambda: len(api.acts) == 1)
    clock.now += 10
    api.open.set()
    assert eventually(lambda: worker.answered)
    outstanding = worker.outstanding
    finished = worker.finished()
    worker.close(20)

    assert [Answer.ACCEPTED, Answer.CANCELLED] == [item.result.answer for item in finished]
    assert (tuple(acts), ()) == (outstanding, worker.outstanding)
    WatchedWorker(api.carry_out, api.carry_out, Clock(), 3.0).close(1)  # one that never began


def test_a_pod_that_is_gone_is_not_acted_on() -> None:
    """A pod that the API server does not know any more at the second look is left alone."""
    with running() as node:
        violated(node).tick(2)
        full = node.api.known
        known = [full, pods_on_node([pod("good")])]
        node.api.pods = lambda: known.pop(0) if len(known) > 1 else known[0]  # type: ignore[method-assign] # the second look in a tick sees another list
        node.loop._observer.pods = node.api.pods
        node.tick()

    assert [] == node.api.acts


def _verdicts(node: Node) -> tuple[Verdict, ...]:
    look = node.loop.state.last
    assert look is not None
    return look.decision.verdicts


POLICY = EvictionPolicy(start_pause_seconds=0.0, grace_seconds=0.0)
OVER_SLOW_LISTS = LIMIT + GIB


def slow(node: Node, seconds: dict[int, float]) -> Node:
    """Put a violator on the last of the slow cards, and an innocent on every card."""
    node.cards.list_seconds = seconds
    node.cards.held = {index: {} for index in range(len(CARDS))}
    for index in node.cards.held:
        node.add(pod(f"good-{index}"), GIB, 10 + index, index)
    node.add(pod("greedy"), OVER_SLOW_LISTS, 1, max(seconds))
    return node


def seconds_until_acted(node: Node, most: float) -> float:
    """Look again and again, each time a second after the last look ended."""
    began = node.clock.now
    while not node.api.acts and node.clock.now - began < most:
        node.tick()
    return node.clock.now - began


EACH = [
    pytest.param(dict.fromkeys(range(8), 0.45), id="0.45 s on each of eight cards"),
    pytest.param({0: 2.0}, id="2 s on one card"),
    pytest.param({7: 4.9}, id="all of a look on one card"),
    pytest.param(dict.fromkeys(range(8), 0.9), id="more than one look in all"),
    pytest.param(dict.fromkeys(range(8), 2.4), id="four looks in all"),
]


@pytest.mark.parametrize("seconds", EACH)
def test_slow_lists_put_an_eviction_off_and_no_more(seconds: dict[int, float]) -> None:
    """A violator is evicted within the hold and three rounds of all lists; the innocent stay."""
    with running(POLICY) as node:
        looks = 1 + sum(seconds.values()) // 5
        took = seconds_until_acted(slow(node, seconds), 200.0)

    assert ["greedy"] == [item.pod.name for item in node.api.acts]
    assert took <= POLICY.hold_seconds + 3 * (sum(seconds.values()) + looks)


@pytest.mark.parametrize("interrupted", [False, True], ids=["between two looks", "in a look"])
def test_a_loop_that_was_stopped_has_seen_nothing(*, interrupted: bool) -> None:
    """
    A pause of a minute without a look does not count, however long the look before it took; nor
    does one look that took a minute, as that of a program that was stopped.
    """
    with running(POLICY) as node:
        slow(node, {0: 0.0} if interrupted else dict.fromkeys(range(8), 0.45)).tick(5)
        node.cards.slow_seconds = 60.0 if interrupted else 0.0
        node.tick(seconds=1.0 if interrupted else 60.0)
        node.cards.slow_seconds = 0.0
        node.tick(2)

    assert [] == node.api.acts


@pytest.mark.parametrize(("seconds", "said"), [(4.5, False), (12.0, True)])
def test_a_card_that_cannot_be_judged_says_so(seconds: float, *, said: bool) -> None:
    """A card whose suspects could not be judged for ten seconds has an Event and a figure."""
    with running(POLICY) as node:
        slow(node, {0: 0.0}).tick(3)
        listed = dict(node.cards.lists)
        while node.clock.now - (listed[0].listed_at if listed[0] else 0.0) < seconds:
            node.cards.lists = dict(listed)
            node.cards.list_seconds = {0: 9.0}
            node.tick()
        state = node.loop.state

    assert state.last is not None
    found = state.last.decision.findings[CARDS[0].uuid]
    assert said is found.unjudged
    assert said is (names.NVML_UNAVAILABLE in node.api.reasons)
    assert 0.0 == state.last.decision.findings[CARDS[1].uuid].unjudged_seconds
