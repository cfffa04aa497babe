"""
The last look before an act.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agent.judge import objection, settle
from agent.model.decision import Action, ActResult, Answer, Outcome, Verdict
from agent.model.memory import Memory
from agent.model.pod import pods_on_node
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, card_sample, pod, process_of, uses
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY

if TYPE_CHECKING:
    from agent.model.pod import PodOnNode
    from agent.model.use import Observation

UUID = CARDS[0].uuid
POLICY = EvictionPolicy()


def seen(item: PodOnNode, used: int | None = OVER, *, free: int = GIB, **more: Any) -> Observation:
    """
    Look at a pod and its neighbour twice, so that both are confirmed.
    """
    neighbour = pod("neighbour")
    people = [process_of(item), process_of(neighbour, 2)]
    known = [item, neighbour]
    first = uses([card_sample(0, {1: used, 2: GIB}, at=-1)], people, known)
    return uses([card_sample(0, {1: used, 2: GIB}, free=free, **more)], people, known, first)


def verdict(*, short: bool = False, action: Action = Action.EVICT) -> Verdict:
    use = seen(pod()).cards[UUID].pods["uid-a"]
    return Verdict(pod(), Outcome.EVICT, use, by_shortage=short, action=action)


def said(item: PodOnNode, use: Observation, found: Verdict, **more: Any) -> str:
    now = more.pop("now", 0.5)
    observation = replace(use, pods=pods_on_node([item], **more))
    return objection(found, observation, POLICY, now)


def test_all_as_it_was() -> None:
    """
    A pod that is still over its limit goes.
    """
    assert "" == said(pod(), seen(pod()), verdict())


def test_short_as_it_was() -> None:
    """
    A pod that is over by little goes while its card is short.
    """
    use = seen(pod(), SLIGHTLY, free=0)

    assert "" == said(pod(), use, verdict(short=True))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"mode": Mode.CAP}, "its mode is not evict any more"),
        ({"exempt": "it is a mirror pod"}, "it is exempt now"),
        ({"enforced": False}, "it is exempt now"),
        ({"terminating": True}, "it is terminating by itself"),
        ({"limits": {}}, "it holds nothing on the card that counts"),
        ({"uid": "uid-next"}, "the pod is gone"),
    ],
)
def test_pod_that_has_changed(changed: dict[str, Any], expected: str) -> None:
    """
    A pod that is not what it was stays.
    """
    item = pod(**changed)

    assert expected == said(item, seen(item), verdict())


def test_kill_needs_a_terminating_pod() -> None:
    """
    Only a pod that is still terminating has its processes killed.
    """
    kill = verdict(action=Action.KILL)

    assert "" == said(pod(terminating=True), seen(pod()), kill)
    assert "it is not terminating" == said(pod(), seen(pod()), kill)


@pytest.mark.parametrize(
    ("used", "free", "short", "expected"),
    [
        (GIB, GIB, False, "it is not over its limit any more"),
        (SLIGHTLY, GIB, False, "it is not over its limit any more"),
        (None, GIB, False, "it is not over its limit any more"),
        (OVER, GIB, True, "the card is not short any more"),
        (GIB, 0, True, "the card is not short any more"),
        (None, 0, True, "the card is not short any more"),
    ],
)
def test_use_that_has_changed(
    used: int | None,
    free: int,
    short: bool,  # noqa: FBT001 - a column
    expected: str,
) -> None:
    """
    A pod stays whose use, or its card's shortage, is not what made it due.
    """
    assert expected == said(pod(), seen(pod(), used, free=free), verdict(short=short))


def test_shortage_that_the_pod_would_not_cure() -> None:
    """
    A pod that the webhook never saw stays if it would not end the shortage any more.
    """
    item = pod(injected=False)

    assert "" == said(item, seen(item, OVER, free=212 * MIB), verdict(short=True))
    assert "the card is not short any more" == said(
        item, seen(item, OVER, free=211 * MIB), verdict(short=True)
    )


def test_card_that_cannot_be_read() -> None:
    """
    Without a recent list of the card nobody goes.
    """
    gap = uses([card_sample(0, None)], [], [pod()], seen(pod()))

    assert "the card cannot be read" == said(pod(), gap, verdict())
    assert "the card cannot be read" == said(pod(), seen(pod()), verdict(), now=3.5)
    assert "the card cannot be read" == said(pod(), uses([], [], []), verdict())


def test_card_under_mps() -> None:
    """
    A card that MPS clients have come to is left alone.
    """
    use = seen(pod(), mps=True)

    assert "it holds nothing on the card that counts" == said(pod(), use, verdict())


def test_api_server_out_of_reach() -> None:
    """
    Nobody goes by what was true a while ago.
    """
    assert "the API server is out of reach" == said(pod(), seen(pod()), verdict(), fresh=False)


def test_act_called_off_leaves_no_trace() -> None:
    """
    An act that was not carried out is not remembered.
    """
    memory = Memory(0.0)

    assert memory == settle(memory, verdict(), ActResult(Answer.CANCELLED), POLICY, 1.0)


def test_answer_about_a_pod_that_has_left() -> None:
    """
    A refusal that arrives when the pod is forgotten is forgotten too.
    """
    memory = Memory(0.0)

    assert memory == settle(memory, verdict(), ActResult(Answer.FAILED), POLICY, 1.0)
