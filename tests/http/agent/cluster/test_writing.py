"""Events and the node's cards on their way, when the way is bad."""

import time
from typing import Any

from agent.events.episodes import EventCreate, EventPatch, Notice
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


def test_a_count_of_an_unknown_event(server: ApiServer) -> None:
    """A repetition whose first Event was never written is written as a new one."""
    server.on(CREATED, OK)
    with agent_of(server) as agent:
        agent.write([EventPatch(9, 4, NOTICE)])
        wait_for(lambda: agent.status().events_written == 1, agent)

    assert 4 == body(server, CREATED)["count"]


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
