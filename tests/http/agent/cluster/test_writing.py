"""Events and the node's cards on their way, when the way is bad."""

import time
from typing import Any

import pytest

from agent.events import EventCreate, EventPatch, Notice
from gpufence.names import CARDS as CARDS_KEY
from gpufence.names import LIMIT_EXCEEDED
from kube.events import Regarding
from tests.http.agent.cluster.builders import (
    CARDS,
    NAMESPACE,
    NODE,
    NODES,
    agent_of,
    listing,
    refusal,
    telling_node,
    this_node,
    wait_for,
)
from tests.support.api_server import ApiServer, cut, hang, reply
from tests.support.http_server import PATIENCE_SECONDS

EVENTS = f"{NAMESPACE}/events"
CREATED = f"POST {EVENTS}"
PATCHED = f"PATCH {NODES}/{NODE}"
NOTICE = Notice(LIMIT_EXCEEDED, Regarding("v1", "Pod", "team-a", "train-1", "u"), "too much")
OK = reply({"kind": "Event"})


def body(server: ApiServer, key: str, position: int = -1) -> dict[str, Any]:
    found = server.seen(key)[position].json
    assert isinstance(found, dict)
    return found


def test_trouble_passes(server: ApiServer) -> None:
    """An Event that got no answer is tried again, under the same name."""
    server.on(CREATED, cut(), refusal(500), refusal(429), OK)
    with agent_of(server) as agent:
        agent.write([EventCreate(1, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)
    tried = {body(server, CREATED, n)["metadata"]["name"] for n in range(4)}

    assert 1 == len(tried)


def test_an_answer_that_was_lost(server: ApiServer) -> None:
    """An Event that exists by then was written."""
    server.on(CREATED, cut(), refusal(409, "AlreadyExists"))
    with agent_of(server) as agent:
        agent.write([EventCreate(1, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)
        status = agent.status()

    assert (0, 0) == (status.events_dropped, status.events_refused)


def test_trouble_that_stays(server: ApiServer) -> None:
    """An Event that gets no answer for too long is dropped, and the next one has its chance."""
    server.on(CREATED, cut(), cut(), OK)
    with agent_of(server, event_attempts=2) as agent:
        agent.write([EventCreate(1, NOTICE), EventCreate(2, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)
        dropped = agent.status().events_dropped

    assert 1 == dropped


def test_an_api_server_that_knows_no_rules_yet(server: ApiServer) -> None:
    """
    An Event that is forbidden is tried for a while: an API server that starts forbids everything.
    """
    server.on(CREATED, *[refusal(403)] * 3, OK)
    with agent_of(server) as agent:
        agent.write([EventCreate(1, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)
        refused = agent.status().events_refused

    assert 0 == refused


def test_what_stays_forbidden(server: ApiServer) -> None:
    """An Event that stays forbidden for too long is refused, and the next one has its chance."""
    server.on(CREATED, refusal(403), OK)
    with agent_of(server, forbidden_seconds=0.0) as agent:
        agent.write([EventCreate(1, NOTICE), EventCreate(2, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)
        refused = agent.status().events_refused

    assert 1 == refused
    assert 2 == len(server.seen(CREATED))


@pytest.mark.parametrize("code", [404, 422])
def test_refusals(server: ApiServer, code: int) -> None:
    """An Event that is refused is not tried again."""
    server.on(CREATED, refusal(code), OK)
    with agent_of(server) as agent:
        agent.write([EventCreate(1, NOTICE), EventCreate(2, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)
        refused = agent.status().events_refused

    assert 1 == refused
    assert 2 == len(server.seen(CREATED))


def test_a_count_of_an_unknown_event(server: ApiServer) -> None:
    """A repetition whose first Event was never written is written as a new one."""
    server.on(CREATED, OK)
    with agent_of(server) as agent:
        agent.write([EventPatch(9, 4, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)

    assert 4 == body(server, CREATED)["count"]


def test_a_full_queue(server: ApiServer) -> None:
    """What finds no place in the queue is dropped at once."""
    server.on(CREATED, hang())
    with agent_of(server, queued_events=3, request_seconds=0.2, close_seconds=0.1) as agent:
        agent.write(EventCreate(n, NOTICE) for n in range(10))
        dropped = agent.status().events_dropped

    assert 6 <= dropped <= 7


def test_the_last_words(server: ApiServer) -> None:
    """Events that wait when the program ends are written."""
    server.on(CREATED, OK)
    with agent_of(server) as agent:
        agent.write(EventCreate(n, NOTICE) for n in range(20))

    assert 20 == agent.status().events_written


def test_an_end_in_time(server: ApiServer) -> None:
    """An API server that does not answer does not hold up the end."""
    server.on(CREATED, hang())
    with agent_of(server, close_seconds=0.2) as agent:
        agent.write(EventCreate(n, NOTICE) for n in range(20))
        server.wait_for(CREATED, 1)
        begin = time.monotonic()
    took = time.monotonic() - begin

    assert PATIENCE_SECONDS / 2 > took


def test_an_end_in_trouble(server: ApiServer) -> None:
    """At the end nothing is tried twice."""
    server.on(CREATED, refusal(500))
    with agent_of(server, event_attempts=10**6) as agent:
        agent.write([EventCreate(1, NOTICE)])
        server.wait_for(CREATED, 2)

    assert 1 == agent.status().events_dropped


def test_long_memory(server: ApiServer) -> None:
    """Only so many Events are remembered; the count of one that is forgotten makes a new one."""
    server.on(CREATED, OK)
    with agent_of(server, remembered_events=3) as agent:
        agent.write(EventCreate(n, NOTICE) for n in range(4))
        agent.write([EventPatch(0, 2, NOTICE)])
        wait_for(lambda: agent.status().events_written == 5, agent)

    assert 5 == len(server.seen(CREATED))


def test_the_node_is_told_until_it_says_so(server: ApiServer) -> None:
    """The node's cards are written again after every failure."""
    server.on(PATCHED, cut(), refusal(500), refusal(404), refusal(403), reply(telling_node()))
    with agent_of(server) as agent:
        before = agent.status().published
        agent.publish(CARDS)
        wait_for(lambda: agent.status().published, agent)

    assert not before
    assert 5 == len(server.seen(PATCHED))
    assert [CARDS_KEY] == list(body(server, PATCHED)["metadata"]["annotations"])


def test_cards_before_the_node(server: ApiServer) -> None:
    """Nothing is written before the Node is known."""
    server.on(f"GET {NODES}", refusal(503), refusal(503), listing(this_node()))
    server.on(PATCHED, reply(telling_node()))
    with agent_of(server, wait=False) as agent:
        agent.publish(CARDS)
        wait_for(lambda: agent.status().published, agent)

    assert 1 == len(server.seen(PATCHED))
    assert 3 == len(server.seen(f"GET {NODES}"))
