"""An agent's cluster part before a scripted API server, and the answers such a server gives."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from agent.cluster import AgentCluster, ClusterSettings, Impersonation
from agent.model.decision import Action, Outcome, Verdict
from agent.model.pod import PodOnNode
from gpufence import names
from gpufence.cards import write_cards
from gpufence.mode import Mode
from gpufence.times import Backoff
from kube import JsonObject
from kube.watch import WatchSettings
from tests.http.kube.builders import client_of, status
from tests.support.builders import card, gpushare, node, node_cards
from tests.support.builders import pod as raw_pod
from tests.support.observing import eventually
from tests.support.servers import Answer, ApiServer, reply, watch

NODE: Final = "node-1"
PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
NAMESPACES: Final = "/api/v1/namespaces"
NAMESPACE: Final = f"{NAMESPACES}/team-a"
POD: Final = f"{NAMESPACE}/pods/train-1"
LOOK: Final = f"GET {NAMESPACE}/pods"
POLICIES: Final = f"{NAMESPACES}/{names.SYSTEM_NAMESPACE}/configmaps"
NEED: Final = f"{POLICIES}/{names.NEED_PREFIX}{NODE}"
POLICY: Final = f"GET {POLICIES}/{names.POLICY_CONFIGMAP}"
CARDS: Final = node_cards(card(0))
QUICK: Final = Backoff(first_seconds=0.01, limit_seconds=0.02)


def pod(**metadata: Any) -> JsonObject:
    made = raw_pod(gpushare(), nodeName=NODE)
    made["metadata"] |= {"resourceVersion": "5", **metadata}
    return made


def namespace(mode: str = "evict") -> JsonObject:
    return {"metadata": {"name": "team-a", "labels": {names.MODE: mode}, "resourceVersion": "5"}}


def policy(mode: str = "evict") -> JsonObject:
    metadata = {"name": names.POLICY_CONFIGMAP, "resourceVersion": "5"}
    return {"metadata": metadata, "data": {names.POLICY_MAX_MODE: mode}}


def this_node(**more: Any) -> JsonObject:
    made = node(name=NODE, **more)
    made["metadata"]["resourceVersion"] = "5"
    return made


def telling_node() -> JsonObject:
    """Build the Node once it says what `CARDS` come to."""
    said = node_cards(*CARDS.cards, units={names.GPUSHARE_MEMORY: "GiB"})
    return this_node(annotations={names.CARDS: write_cards(said)})


def listing(*items: JsonObject) -> Answer:
    return reply({"kind": "List", "metadata": {"resourceVersion": "10"}, "items": list(items)})


def refusal(code: int, reason: str = "No", message: str = "no", **details: object) -> Answer:
    return reply(status(code, reason, message, **details), code)


def script(server: ApiServer) -> None:
    """
    Script a healthy cluster with one pod, in which nothing happens.

    The pod is found by a list only: all that an API server lets a node know of one that is gone.
    """
    for path, item in (
        (PODS, pod()),
        (NODES, this_node()),
        (NAMESPACES, namespace()),
        (POLICIES, policy()),
    ):
        server.on(f"GET {path}", listing(item))
        server.on(f"WATCH {path}", watch(then="hang"))
    server.on(LOOK, listing(pod()))
    server.on(f"GET {POD}", refusal(403))
    server.on(f"GET {NAMESPACE}", reply(namespace()))
    server.on(POLICY, reply(policy()))
    server.on(f"GET {NEED}", refusal(404))
    server.on(f"PATCH {NODES}/{NODE}", reply(telling_node()))


def settings(**more: Any) -> ClusterSettings:
    said: dict[str, Any] = {
        "node": NODE,
        "impersonation": Impersonation.ON,
        "watching": WatchSettings(backoff=QUICK),
        "backoff": QUICK,
        "publish_pause_seconds": 0.01,
        "close_seconds": 1.0,
    }
    return ClusterSettings(**said | more)


@contextmanager
def agent_of(
    server: ApiServer,
    *,
    wait: bool = True,
    before: Callable[[AgentCluster], None] | None = None,
    **more: Any,
) -> Iterator[AgentCluster]:
    """Run an agent's cluster part, from when it knows everything on; `before` it is started."""
    agent = AgentCluster(client_of(server), settings(**more))
    if before is not None:
        before(agent)
    agent.start()
    try:
        if wait:
            wait_for(lambda: agent.pods().fresh, agent)
        yield agent
    finally:
        agent.close()


def wait_for(condition: Callable[[], bool], agent: AgentCluster) -> None:
    assert eventually(condition), f"{agent.status()}"


def verdict(action: Action | None = Action.EVICT, **more: Any) -> Verdict:
    metadata = pod()["metadata"]
    said: dict[str, Any] = {
        "uid": metadata["uid"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "mode": Mode.EVICT,
    }
    return Verdict(PodOnNode(**said | more), Outcome.EVICT, action=action)
