"""
What is asked to make a pod go, and what is made of answers that a healthy API server never gives.
"""

import time
from typing import Any

import pytest

from agent.model.decision import Action, ActResult, Answer
from tests.http.agent.builders import (
    LOOK,
    NAMESPACE,
    POD,
    POLICY,
    agent_of,
    listing,
    namespace,
    pod,
    policy,
    refusal,
    verdict,
)
from tests.support.servers import PATIENCE_SECONDS, ApiServer, cut, hang, reply
from tests.support.servers import Answer as Reply

EVICTION = f"POST {POD}/eviction"
DELETION = f"DELETE {POD}"
STATUS = f"PATCH {POD}/status"
SUCCESS = reply({"kind": "Status", "apiVersion": "v1", "status": "Success"}, 201)
TOO_LARGE = refusal(500, "InternalError", "etcdserver: request is too large")
SUCCESSOR = listing(pod(uid="another"))
TERMINATING = listing(pod(deletionTimestamp="2026-01-02T03:04:05Z"))
UID = pod()["metadata"]["uid"]
OPTIONS = {"gracePeriodSeconds": 30, "preconditions": {"uid": UID}}


def carry_out(server: ApiServer, action: Action = Action.EVICT, **more: Any) -> ActResult:
    with agent_of(server, **more) as agent:
        return agent.carry_out(verdict(action))


def test_who_asks_what(server: ApiServer) -> None:
    """
    The node asks about pods, where it may not read one by a list of one pod of this node, the agent
    itself about words.
    """
    server.on(EVICTION, SUCCESS)
    carry_out(server)

    def user(key: str) -> str | None:
        return server.seen(key)[0].headers.get("impersonate-user")

    one = {"fieldSelector": "metadata.name=train-1,spec.nodeName=node-1"}
    assert "system:node:node-1" == user(EVICTION) == user(LOOK)
    assert user(POLICY) is user(f"GET {NAMESPACE}") is None
    assert one == server.seen(LOOK)[0].query


def test_a_pod_that_is_there(server: ApiServer) -> None:
    """The last look needs no list where the pod itself may be read."""
    server.on(f"GET {POD}", reply(pod()))
    server.on(EVICTION, SUCCESS)
    result = carry_out(server)

    assert Answer.ACCEPTED is result.answer
    assert [] == server.seen(LOOK)


@pytest.mark.parametrize(
    ("answer", "after", "expected"),
    [
        pytest.param(refusal(409, "Conflict"), SUCCESSOR, Answer.REPLACED, id="successor"),
        pytest.param(refusal(409, "Conflict"), listing(), Answer.GONE, id="conflict-gone"),
        pytest.param(refusal(409, "Conflict"), listing(pod()), Answer.FAILED, id="conflict"),
        pytest.param(cut(), TERMINATING, Answer.ACCEPTED, id="cut-accepted"),
        pytest.param(cut(), listing(pod()), Answer.FAILED, id="cut-lost"),
        pytest.param(cut(), cut(), Answer.FAILED, id="cut-twice"),
        pytest.param(refusal(404, "NotFound"), listing(), Answer.GONE, id="gone"),
        pytest.param(reply(b"<html>", 502), listing(pod()), Answer.FAILED, id="proxy"),
        pytest.param(refusal(403, "Forbidden"), listing(pod()), Answer.FAILED, id="forbidden"),
    ],
)
@pytest.mark.parametrize("action", [Action.EVICT, Action.DELETE])
def test_unclear_answers(
    server: ApiServer, action: Action, answer: Reply, after: Reply, expected: Answer
) -> None:
    """Where the answer leaves open what became of the pod, another look at it tells."""
    server.on(EVICTION, answer)
    server.on(DELETION, answer)
    server.on(LOOK, listing(pod()), after)

    assert expected is carry_out(server, action).answer


@pytest.mark.parametrize(
    ("deletions", "room", "expected", "rooms"),
    [
        pytest.param([SUCCESS], SUCCESS, Answer.ACCEPTED, 0, id="deleted"),
        pytest.param([TOO_LARGE, SUCCESS], SUCCESS, Answer.ACCEPTED, 1, id="with room"),
        pytest.param([TOO_LARGE] * 3 + [SUCCESS], SUCCESS, Answer.ACCEPTED, 1, id="known late"),
        pytest.param([TOO_LARGE], SUCCESS, Answer.TOO_LARGE, 1, id="no room helps"),
        pytest.param([TOO_LARGE], refusal(403), Answer.TOO_LARGE, 1, id="no right to make room"),
        pytest.param([refusal(500)], SUCCESS, Answer.FAILED, 0, id="other trouble"),
    ],
)
def test_a_pod_too_large_to_be_evicted(
    server: ApiServer, deletions: list[Reply], room: Reply, expected: Answer, rooms: int
) -> None:
    """
    A pod into which etcd takes no condition is deleted, and given room for the time of its deletion
    where it needs that.
    """
    server.on(EVICTION, TOO_LARGE)
    server.on(DELETION, *deletions)
    server.on(STATUS, room)
    result = carry_out(server, pauses_seconds=(0.0, 0.0, 0.0))
    body = {"metadata": {"uid": UID}, "status": {"conditions": None}}

    assert expected is result.answer
    assert [body] * rooms == [item.json for item in server.seen(STATUS)]


@pytest.mark.parametrize(
    ("key", "answer", "expected"),
    [
        pytest.param(LOOK, refusal(403), Answer.FAILED, id="pod-forbidden"),
        pytest.param(LOOK, cut(), Answer.FAILED, id="pod-cut"),
        pytest.param(LOOK, listing(), Answer.GONE, id="pod-gone"),
        pytest.param(LOOK, SUCCESSOR, Answer.REPLACED, id="pod-replaced"),
        pytest.param(LOOK, TERMINATING, Answer.CANCELLED, id="pod-terminating"),
        pytest.param(
            LOOK,
            listing(pod(ownerReferences=[{"controller": True, "kind": 1}])),
            Answer.FAILED,
            id="pod-unreadable",
        ),
        pytest.param(f"GET {NAMESPACE}", refusal(404), Answer.CANCELLED, id="namespace-gone"),
        pytest.param(f"GET {NAMESPACE}", refusal(500), Answer.FAILED, id="namespace-unknown"),
        pytest.param(f"GET {NAMESPACE}", reply(namespace("cap")), Answer.CANCELLED, id="cap"),
        pytest.param(POLICY, refusal(404), Answer.CANCELLED, id="policy-gone"),
        pytest.param(POLICY, refusal(403), Answer.FAILED, id="policy-forbidden"),
        pytest.param(POLICY, reply(policy("cap")), Answer.CANCELLED, id="policy-lower"),
    ],
)
def test_the_last_look(server: ApiServer, key: str, answer: Reply, expected: Answer) -> None:
    """Nothing is asked where the last look finds no reason, or does not find out."""
    server.on(EVICTION, SUCCESS)
    with agent_of(server) as agent:
        server.on(key, answer)
        result = agent.carry_out(verdict())

    assert expected is result.answer
    assert result.detail
    assert [] == server.seen(EVICTION)


def test_an_api_server_that_never_answers(server: ApiServer) -> None:
    """An act ends in time, however many of its requests get no answer."""
    server.on(EVICTION, hang())
    with agent_of(server, request_seconds=0.2, act_seconds=0.3) as agent:
        begin = time.monotonic()
        server.on(LOOK, listing(pod()), hang())
        result = agent.carry_out(verdict())
        took = time.monotonic() - begin

    assert Answer.FAILED is result.answer
    assert PATIENCE_SECONDS / 2 > took


def test_no_time_left(server: ApiServer) -> None:
    """What would take too long altogether is not begun."""
    result = carry_out(server, act_seconds=0.0)

    assert Answer.FAILED is result.answer
    assert "took too long" in result.detail
    assert [] == server.seen(LOOK)


@pytest.mark.parametrize("action", [None, Action.KILL])
def test_what_is_no_act_of_the_api(server: ApiServer, action: Action | None) -> None:
    """Signals are not the API server's, and an act that is none is a mistake of the caller."""
    with agent_of(server) as agent, pytest.raises(ValueError, match="no act of the API server's"):
        agent.carry_out(verdict(action))


def test_before_anything_is_known(server: ApiServer) -> None:
    """An act fails before it is known as whom to act."""
    with agent_of(server) as ready:
        never = type(ready)(ready.client, ready.settings)
        result = never.carry_out(verdict())
        never.close()

    assert Answer.FAILED is result.answer
