"""As whom an agent acts, and how far it believes what it knows."""

from pathlib import Path

import pytest

from agent.cluster import AgentCluster, Impersonation
from agent.events.episodes import EventCreate, Notice
from agent.model.state import Identity
from gpufence.mode import Mode
from kube import ClientSettings, WatchSettings, connect
from kube.events import Regarding
from tests.http.agent.cluster.builders import (
    CARDS,
    NAMESPACE,
    NAMESPACES,
    NODES,
    PODS,
    POLICIES,
    QUICK,
    agent_of,
    listing,
    pod,
    refusal,
    settings,
    wait_for,
)
from tests.support.api_server import ApiServer, cut, reply

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
        wait_for(lambda: agent.pods().fresh, agent)
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
