"""Before Kubernetes 1.36: the agent by its own account, bounded by policies."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from agent.cluster import Impersonation
from agent.events.episodes import EventCreate, Notice, about_pod
from agent.model.decision import Action, Answer
from agent.model.state import Identity
from gpufence import names
from kube import Client, ForbiddenError, PatchType, core
from tests.integration.agent.cluster.site import ClusterSite, known, verdict, wait_for
from tests.support.site import policy_path, wait_until_enforced
from tests.support.tree import plain_policies

DRY = {"dryRun": "All"}
SAID = {"metadata": {"annotations": {names.CARDS: "{}"}}}
TAINT = {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}


@pytest.fixture(scope="module")
def neighbour(bare: ClusterSite) -> str:
    name = f"node-{uuid4().hex[:8]}"
    bare.add_node(name)
    return name


@pytest.fixture(scope="module")
def site(bare: ClusterSite) -> Iterator[ClusterSite]:
    """The site with the component's rights and policies."""
    bare.install(plain=True)
    wait_until_enforced(bare)
    yield bare
    for item in plain_policies():
        bare.admin.delete(policy_path(item))


@pytest.mark.parametrize("impersonation", [Impersonation.AUTO, Impersonation.OFF])
def test_all_of_its_work(site: ClusterSite, fenced: str, impersonation: Impersonation) -> None:
    """The plain account can do all that an agent has to do, and finds out that it must."""
    uids = [site.add_pod(fenced, name)["metadata"]["uid"] for name in "ab"]
    with site.cluster(impersonation=impersonation) as agent:
        wait_for(lambda: agent.status().published or None, agent)
        pods = [known(agent, uid) for uid in uids]
        agent.write([EventCreate(1, Notice(names.EVICTED, about_pod(pods[0])[0], "too much"))])
        answers = [
            agent.carry_out(verdict(pod, action)).answer
            for pod, action in zip(pods, (Action.EVICT, Action.DELETE), strict=True)
        ]
        wait_for(lambda: agent.status().events_written or None, agent)
        identity = agent.status().identity

    assert Identity.PLAIN is identity
    assert [Answer.ACCEPTED, Answer.ACCEPTED] == answers


FORBIDDEN: dict[str, Callable[[Client, ClusterSite, str, str], object]] = {
    "another node's cards": lambda client, _site, node, _space: client.patch(
        core("nodes", node), SAID, PatchType.MERGE, DRY
    ),
    "a taint": lambda client, site, _node, _space: client.patch(
        core("nodes", site.node), TAINT, PatchType.MERGE, DRY
    ),
    "another node's pod": lambda client, _site, _node, space: client.delete(
        core("namespaces", space, "pods", "a"), None, DRY
    ),
}


@pytest.mark.parametrize("wish", FORBIDDEN)
def test_what_policies_forbid(site: ClusterSite, fenced: str, neighbour: str, wish: str) -> None:
    """The plain account neither deletes pods of other nodes nor changes those nodes."""
    site.add_pod(fenced, nodeName=neighbour)

    with site.client() as account:
        assert is_forbidden(lambda: FORBIDDEN[wish](account, site, neighbour, fenced))


def is_forbidden(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except ForbiddenError as error:
        return "agent" in error.failure.message
    return False
