"""What the agent writes, and what it believes of what it hears."""

from pathlib import Path
from typing import Any

import pytest

from agent.cluster import AgentCluster, Impersonation
from agent.events.episodes import EventCreate, Notice
from agent.model.pod import PodCondition
from agent.model.state import Identity
from gpufence import names
from gpufence.mode import Mode
from gpufence.names import CARDS as CARDS_KEY
from kube import ClientSettings, connect
from kube.events import Regarding
from tests.http.agent.builders import (
    CARDS,
    NAMESPACE,
    NAMESPACES,
    NODE,
    NODES,
    POD,
    PODS,
    POLICIES,
    agent_of,
    listing,
    pod,
    refusal,
    settings,
    telling_node,
    this_node,
    wait_for,
)
from tests.support.servers import ApiServer, cut, reply

PATCHED = f"PATCH {NODES}/{NODE}"


def body(server: ApiServer, key: str, position: int = -1) -> dict[str, Any]:
    found = server.seen(key)[position].json
    assert isinstance(found, dict)
    return found


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


SAID = f"PATCH {POD}/status"
OTHER = f"PATCH {POD.rpartition('/')[0]}/other/status"
OK = reply({"kind": "Pod"})


IDLE = PodCondition("team-a", "train-1", "u", names.GPU_IDLE, "True", "NoKernels", "no kernels")
MEMORY = IDLE._replace(kind=names.GPU_MEMORY, reason="WithinLimit", turned=False)


def test_one_condition_of_the_very_pod_is_changed(server: ApiServer) -> None:
    """The patch names the pod's UID and one condition, and is merged by its type."""
    server.on(SAID, OK)
    with agent_of(server) as agent:
        agent.say([IDLE])
        server.wait_for(SAID, 1)
    sent = body(server, SAID)
    (condition,) = sent["status"].pop("conditions")

    assert {"metadata": {"uid": "u"}, "status": {}} == sent
    assert (names.GPU_IDLE, "True", "NoKernels", "no kernels") == tuple(
        condition[key] for key in ("type", "status", "reason", "message")
    )
    assert condition["lastTransitionTime"].endswith("Z")


def test_all_conditions_that_are_due_of_a_pod_go_in_one_request(server: ApiServer) -> None:
    """Each has its own times; one whose status is as before has turned at no new time."""
    server.on(SAID, OK)
    with agent_of(server) as agent:
        agent.say([IDLE, MEMORY])
        server.wait_for(SAID, 1)
    idle, memory = body(server, SAID)["status"]["conditions"]

    assert [names.GPU_IDLE, names.GPU_MEMORY] == [idle["type"], memory["type"]]
    assert memory["lastProbeTime"]
    assert "lastTransitionTime" not in memory


TROUBLE = {
    "gone": refusal(404),
    "another": refusal(409, "Conflict"),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_with_one_pod_is_no_trouble_of_the_next(server: ApiServer, trouble: str) -> None:
    """A pod that is another one by now is patched once, and the next pod has its turn."""
    server.on(SAID, TROUBLE[trouble])
    server.on(OTHER, OK)
    with agent_of(server) as agent:
        agent.say([IDLE, IDLE._replace(name="other", uid="o")])
        server.wait_for(OTHER, 1)

    assert 1 == len(server.seen(SAID))
