"""What the agent writes, and what it believes of what it hears."""

import time
from pathlib import Path
from typing import Any

import pytest

from agent.cluster import AgentCluster, Impersonation
from agent.events.episodes import EventCreate, EventPatch, Notice
from agent.model.state import Identity
from gpufence.mode import Mode
from gpufence.names import CARDS as CARDS_KEY
from gpufence.names import LIMIT_EXCEEDED
from kube import ClientSettings, WatchSettings, connect
from kube.events import Regarding
from tests.http.agent.builders import (
    CARDS,
    NAMESPACE,
    NAMESPACES,
    NODE,
    NODES,
    PODS,
    POLICIES,
    QUICK,
    agent_of,
    listing,
    pod,
    refusal,
    settings,
    telling_node,
    this_node,
    wait_for,
)
from tests.support.servers import PATIENCE_SECONDS, ApiServer, cut, hang, reply

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


FORBIDDEN = refusal(403, "Forbidden")


def test_trouble_is_no_refusal(server: ApiServer) -> None:
    """An API server that breaks off does not make the agent fall back to wider rights."""
    server.on(f"GET {PODS}", cut(), cut(), refusal(500), listing(pod()))
    with agent_of(server, impersonation=Impersonation.AUTO) as agent:
        identity = agent.status().identity

    assert Identity.IMPERSONATING is identity


def test_nobody_may(server: ApiServer) -> None:
    """An agent without any rights says what to apply, and goes on once it has some."""
    server.on(f"GET {PODS}", FORBIDDEN)
    with agent_of(server, wait=False, impersonation=Impersonation.AUTO) as agent:
        wait_for(lambda: "deploy/base" in agent.status().trouble, agent)
        before = agent.status()
        server.on(f"GET {PODS}", listing(pod()))
        wait_for(lambda: agent.pods().fresh, agent)

    assert Identity.UNKNOWN is before.identity
    assert not before.synced


@pytest.mark.parametrize("path", [PODS, NODES, NAMESPACES, POLICIES])
def test_everything_must_have_been_read(server: ApiServer, path: str) -> None:
    """What is known is not acted on before everything has been read once."""
    server.on(f"GET {path}", FORBIDDEN)
    with agent_of(server, wait=False) as agent:
        wait_for(lambda: bool(agent.status().trouble), agent)
        before = agent.pods()
        server.on(f"GET {path}", listing())
        wait_for(lambda: agent.pods().fresh, agent)

    assert not before.fresh


def test_quiet_watches_are_opened_anew(server: ApiServer) -> None:
    """A cluster in which nothing happens stays fresh."""
    watching = WatchSettings(silence_seconds=0.1, settled_seconds=0.0, backoff=QUICK)
    with agent_of(server, watching=watching) as agent:
        for path in (PODS, NODES, NAMESPACES, POLICIES):
            server.wait_for(f"WATCH {path}", 5)
        fresh = agent.pods().fresh

    assert fresh


def test_nobody_is_fenced_before_the_cards_are_known(server: ApiServer) -> None:
    """Pods have no mode until the cards are known, since they would seem to have no limit."""
    with agent_of(server) as agent:
        (before,) = agent.pods().by_uid.values()
        agent.publish(CARDS)
        (after,) = agent.pods().by_uid.values()

    assert before.mode is None
    assert (Mode.EVICT, ["GPU-0"]) == (after.mode, list(after.limits))


@pytest.mark.parametrize("path", [NODES, POLICIES])
def test_nobody_is_fenced_before_the_words_are_known(server: ApiServer, path: str) -> None:
    """Pods have no mode until the node's units and the kill switch are known."""
    server.on(f"GET {path}", refusal(503))
    with agent_of(server, wait=False) as agent:
        agent.publish(CARDS)
        wait_for(lambda: bool(agent.pods().by_uid), agent)
        server.wait_for(f"WATCH {NAMESPACES}", 1)
        (before,) = agent.pods().by_uid.values()

    assert before.mode is None


def test_tokens_are_read_again(server: ApiServer, tmp_path: Path) -> None:
    """A token that the kubelet has renewed is used for what comes next, as the node too."""
    token = tmp_path / "token"
    token.write_text("one")
    reading = ClientSettings(server=server.url, token_file=token, token_period_seconds=0.0)
    server.on(f"POST {NAMESPACE}/events", reply({}))
    agent = AgentCluster(connect(reading), settings())
    agent.start()
    try:
        server.wait_for(f"WATCH {PODS}", 1)
        token.write_text("two")
        about = Regarding("v1", "Pod", "team-a", "train-1", "u")
        agent.write([EventCreate(1, Notice("GPUMemoryEvicted", about, "too much"))])
        (seen,) = server.wait_for(f"POST {NAMESPACE}/events", 1)
    finally:
        agent.close()

    assert "Bearer one" == server.seen(f"WATCH {PODS}")[0].headers["authorization"]
    assert "Bearer two" == seen.headers["authorization"]


def test_an_unreadable_pod(server: ApiServer) -> None:
    """A pod that cannot be read is left out, and no reason to stop."""
    broken = pod(uid="broken", name=7)
    server.on(f"GET {PODS}", listing(broken, pod()))
    with agent_of(server) as agent:
        known = agent.pods().by_uid

    assert [pod()["metadata"]["uid"]] == list(known)


def test_closing_what_was_never_started(server: ApiServer) -> None:
    """A cluster part that never finds out who it is can be closed at once."""
    server.on(f"GET {PODS}", FORBIDDEN)
    with agent_of(server, wait=False, impersonation=Impersonation.AUTO) as agent:
        wait_for(lambda: bool(agent.status().trouble), agent)

    assert not agent.pods().fresh
