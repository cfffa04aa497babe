"""
From a verdict to an act and back: looked at again, handed over, remembered.
"""

from __future__ import annotations

from dataclasses import replace

from agent.loop.hands import Hands
from agent.model.decision import Action, ActResult, Answer, Outcome, Verdict
from agent.model.pod import pods_on_node
from gpufence import names
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.node import QUICK, ApiServer, Clock, Node, running
from tests.support.observing import eventually

OVER = LIMIT + 300 * MIB
EVICT = ("evict", "accepted")


def violated(node: Node) -> Node:
    """
    Put a violator and an innocent on the first card.
    """
    node.add(pod("greedy"), OVER, 1)
    node.add(pod("good"), GIB, 2)
    return node


def test_a_violator_is_evicted_once_its_time_is_up() -> None:
    """
    The violator alone is evicted, and the next tick remembers it everywhere.
    """
    with running() as node:
        violated(node).tick_until_acted()
        node.tick()
        state = node.loop.state

    assert ["greedy"] == [item.pod.name for item in node.api.acts]
    assert 1 == state.counts.evictions[EVICT]
    assert names.EVICTED in node.api.reasons
    assert 1 == state.ledger.owners["team-a", "Pod", "greedy"].evictions


def test_the_card_is_looked_at_again_right_before() -> None:
    """
    Handing over follows a second look at the violator's card, in the same tick.
    """
    with running() as node:
        violated(node).tick_until_acted()

    assert frozenset({CARDS[0].uuid}) == node.cards.asked[-1]
    assert len(node.cards.asked) == node.loop.state.counts.ticks.counts[0] + 1


def test_who_gave_the_memory_back_is_spared() -> None:
    """
    A pod that is within its limit at the second look is not evicted.
    """
    with running() as node:
        violated(node).tick(3)
        looks = len(node.cards.asked)
        node.cards.held = _LettingGo(node, looks + 1)
        node.tick()

    assert [] == node.api.acts
    assert Outcome.EVICT in [item.outcome for item in _verdicts(node)]


class _LettingGo(dict[int, dict[int, int | None]]):
    """
    What is held until the given look, and little afterwards.
    """

    def __init__(self, node: Node, look: int) -> None:
        super().__init__(node.cards.held)
        self._node = node
        self._look = look

    def __getitem__(self, card: int) -> dict[int, int | None]:
        if len(self._node.cards.asked) > self._look:
            return {1: GIB, 2: GIB}
        return super().__getitem__(card)


def test_a_slow_api_delays_no_look() -> None:
    """
    While the API server takes its time, ticks go on and no second act is begun.
    """
    with running() as node:
        node.api.open.clear()
        violated(node).tick(4)
        assert eventually(lambda: len(node.api.acts) == 1)
        node.tick(10)
        at = node.loop.state.at
        assert 1 == len(node.api.acts)
        assert node.hands.busy
        node.api.open.set()
        assert eventually(lambda: node.hands.answered)
        node.tick()

    assert at == node.loop.state.at - 1
    assert 1 == node.loop.state.counts.evictions[EVICT]


def test_a_refusal_is_told_and_waited_out() -> None:
    """
    A budget's refusal becomes an Event, and the next try comes after the back-off.
    """
    with running() as node:
        node.api.result = ActResult(Answer.BLOCKED, detail="budget web")
        violated(node).tick_until_acted()
        node.tick(3)
        tries = len(node.api.acts)
        node.tick_until_acted(2)

    assert 1 == tries
    assert names.EVICTION_BLOCKED in node.api.reasons


def test_a_bug_in_acting_is_a_failure_like_others() -> None:
    """
    An exception while acting is logged, counted as failed and told, and acting goes on.
    """
    with running() as node:
        node.api.error = RuntimeError("a bug")
        violated(node).tick_until_acted()
        node.tick()

    assert 1 == node.loop.state.counts.evictions["evict", "failed"]
    assert names.EVICTION_FAILED in node.api.reasons


def test_a_stuck_pod_is_killed_where_that_is_enabled() -> None:
    """
    A violator that has been terminating for too long is killed, not evicted.
    """
    policy = replace(QUICK, last_resort_kill=True, termination_seconds=1.0)
    with running(policy) as node:
        node.add(pod("stuck", terminating=True), OVER, 1)
        node.tick_until_acted()

    assert [Action.KILL] == [item.action for item in node.killed]
    assert [] == node.api.acts


def test_an_act_that_comes_too_late_is_cancelled() -> None:
    """
    An act that had to wait for another one for too long is not carried out.
    """
    clock, api = Clock(), ApiServer()
    hands = Hands(api.carry_out, api.carry_out, clock, 3.0)
    hands.take(
        [
            Verdict(pod("a"), Outcome.EVICT, action=Action.EVICT),
            Verdict(pod("b"), Outcome.EVICT, action=Action.EVICT),
        ]
    )
    hands.start()
    assert eventually(lambda: len(api.acts) == 1)
    clock.now += 10
    api.open.set()
    assert eventually(lambda: hands.answered)
    done = hands.done()
    hands.close(20)

    assert [Answer.ACCEPTED, Answer.CANCELLED] == [item.result.answer for item in done]
    assert not hands.busy


def test_an_end_before_the_beginning_is_no_harm() -> None:
    """
    Hands that never began can be closed.
    """
    api = ApiServer()
    hands = Hands(api.carry_out, api.carry_out, Clock(), 3.0)
    hands.close(1)

    assert not hands.busy


def test_a_pod_that_is_gone_is_not_acted_on() -> None:
    """
    A pod that the API server does not know any more at the second look is left alone.
    """
    with running() as node:
        violated(node).tick(3)
        full = node.api.known
        known = [full, pods_on_node([pod("good")])]
        node.api.pods = lambda: known.pop(0) if len(known) > 1 else known[0]  # type: ignore[method-assign] # the second look in a tick sees another list
        node.loop._eyes._pods = node.api.pods
        node.tick()

    assert [] == node.api.acts


def _verdicts(node: Node) -> tuple[Verdict, ...]:
    look = node.loop.state.last
    assert look is not None
    return look.decision.verdicts
