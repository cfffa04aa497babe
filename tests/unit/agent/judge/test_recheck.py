"""The last look before an act."""

from dataclasses import replace
from typing import Any

import pytest

from agent.judge import objection, settle
from agent.model.decision import Action, ActResult, Answer, Outcome, Verdict
from agent.model.memory import Memory
from agent.model.pod import PodOnNode, pods_on_node
from agent.model.policy import EvictionPolicy
from agent.model.use import Observation
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, card_sample, occupant, pod, process_of, uses
from tests.support.builders import T4_BYTES
from tests.unit.agent.judge.scenes import OVER, SLIGHTLY

UUID = CARDS[0].uuid
POLICY = EvictionPolicy()


def seen(item: PodOnNode, used: int | None = OVER, *, free: int = GIB, **more: Any) -> Observation:
    """Look at a pod and its neighbour twice, so that both are confirmed."""
    held = T4_BYTES - (used or 0) - free
    neighbour = pod("neighbour", limit=held)
    people = [process_of(item), process_of(neighbour, 2), occupant(3, None, None)]
    known = [item, neighbour]
    first = uses([card_sample(0, {1: used, 2: held}, at=-1)], people, known)
    now = {1: used, 2: held} | ({3: 0} if more else {})
    return uses([card_sample(0, now, free=free, **more)], people, known, first)


def verdict(*, short: bool = False, action: Action = Action.EVICT) -> Verdict:
    use = seen(pod()).cards[UUID].pods["uid-a"]
    return Verdict(pod(), Outcome.EVICT, use, by_shortage=short, action=action)


def against(use: Observation, *, now: float = 0.5, **more: Any) -> str:
    return objection(verdict(**more), use, POLICY, now)


@pytest.mark.parametrize(
    ("changed", "action", "expected"),
    [
        ({}, Action.EVICT, ""),
        ({"mode": Mode.CAP}, Action.EVICT, "its mode is not evict any more"),
        ({"exempt": "it is a mirror pod"}, Action.EVICT, "it is exempt now"),
        ({"enforced": False}, Action.EVICT, "it is exempt now"),
        ({"terminating": True}, Action.EVICT, "it is terminating by itself"),
        ({"limits": {}}, Action.EVICT, "it holds nothing on the card that counts"),
        ({"uid": "uid-next"}, Action.EVICT, "the pod is gone"),
        ({"terminating": True}, Action.KILL, ""),
        ({}, Action.KILL, "it is not terminating"),
    ],
)
def test_pod_that_has_changed(changed: dict[str, Any], action: Action, expected: str) -> None:
    """A pod that is not what it was stays; only one that is still terminating is killed."""
    assert expected == against(seen(pod(**changed)), action=action)


@pytest.mark.parametrize(
    ("used", "free", "short", "expected"),
    [
        (OVER, GIB, False, ""),
        (GIB, GIB, False, "it is not over its limit any more"),
        (SLIGHTLY, GIB, False, "it is not over its limit any more"),
        (None, GIB, False, "it is not over its limit any more"),
        (SLIGHTLY, 450 * MIB, True, ""),
        (OVER, GIB, True, "its eviction does not end a shortage any more"),
        (GIB, 0, True, "its eviction does not end a shortage any more"),
        (None, 0, True, "its eviction does not end a shortage any more"),
    ],
)
def test_use_that_has_changed(
    used: int | None,
    free: int,
    short: bool,  # noqa: FBT001 - a column
    expected: str,
) -> None:
    """A pod stays whose use, or its card's shortage, is not what made it due."""
    assert expected == against(seen(pod(), used, free=free), short=short)


@pytest.mark.parametrize(("free", "goes"), [(212 * MIB, True), (211 * MIB, False)])
def test_shortage_that_the_pod_would_not_cure(free: int, goes: bool) -> None:  # noqa: FBT001 - a column
    """A pod that the webhook never saw stays if it would not end the shortage any more."""
    expected = "" if goes else "its eviction does not end a shortage any more"

    assert expected == against(seen(pod(injected=False), free=free), short=True)


def test_card_that_cannot_be_read() -> None:
    """Without a recent list of the card, and as a client of the node's MPS server, nobody goes."""
    gap = uses([card_sample(0, None)], [], [pod()], seen(pod()))

    assert "the card cannot be read" == against(gap)
    assert "the card cannot be read" == against(seen(pod()), now=3.5)
    assert "the card cannot be read" == against(uses([], [], [pod()]))
    assert "it holds nothing on the card that counts" == against(seen(pod(), mps={1, 3}))


def test_api_server_out_of_reach() -> None:
    """Nobody goes by what was true a while ago."""
    stale = replace(seen(pod()), pods=pods_on_node([pod()], fresh=False))

    assert "the API server is out of reach" == against(stale)


@pytest.mark.parametrize("answer", [Answer.CANCELLED, Answer.FAILED])
def test_answers_that_leave_no_trace(answer: Answer) -> None:
    """An act that was called off is not remembered, nor a refusal for a pod that is forgotten."""
    memory = Memory(0.0)

    assert memory == settle(memory, verdict(), ActResult(answer), POLICY, 1.0)
