"""What the shipped rights let an agent do, and what they do not."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from agent.cluster import AgentCluster, Impersonation
from agent.model.decision import Action, Answer
from agent.model.state import Identity
from gpufence import names
from kube import Client, ForbiddenError, JsonObject, PatchType, core
from tests.integration.agent.cluster.site import ClusterSite, known, verdict, wait_for
from tests.support.site import AS_ITS_NODE

pytestmark = pytest.mark.since(*AS_ITS_NODE, skip=True)


@pytest.fixture(scope="module")
def neighbour(site: ClusterSite) -> str:
    """Another node."""
    name = f"node-{uuid4().hex[:8]}"
    site.add_node(name)
    return name


@pytest.fixture(scope="module")
def account(site: ClusterSite) -> Iterator[Client]:
    """The agent's own account, in a pod on the site's node."""
    with site.client() as client:
        yield client


@pytest.fixture
def as_node(site: ClusterSite, account: Client) -> Client:
    return account.impersonating(f"system:node:{site.node}")


@pytest.mark.since(*AS_ITS_NODE)
def test_the_node_is_impersonated(cluster: AgentCluster) -> None:
    """Where the API server lets an agent act as its node, it does."""
    assert Identity.IMPERSONATING is cluster.status().identity


REFUSED: dict[str, Callable[[Client, str, str], object]] = {
    "all pods": lambda client, _node, _space: client.list(core("pods")),
    "a pod by name": lambda client, _node, space: client.get(
        core("namespaces", space, "pods", "a")
    ),
    "secrets": lambda client, _node, space: client.list(core("namespaces", space, "secrets")),
    "all nodes": lambda client, _node, _space: client.list(core("nodes")),
    "a taint": lambda client, node, _space: client.patch(
        core("nodes", node),
        {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}},
        PatchType.MERGE,
    ),
    "a new pod": lambda client, node, space: client.post(
        core("namespaces", space, "pods"),
        {
            "metadata": {"name": "b"},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "x"}]},
        },
    ),
    "a token": lambda client, _node, space: client.post(
        core("namespaces", space, "serviceaccounts", "gpufence-agent", "token"), {}
    ),
    "the kill switch": lambda client, _node, space: client.delete(
        core("namespaces", space, "configmaps", names.POLICY_CONFIGMAP)
    ),
}


@pytest.mark.parametrize("wish", REFUSED)
def test_refused_as_the_node(site: ClusterSite, as_node: Client, wish: str) -> None:
    """As its node an agent may do nothing beyond what it needs."""
    with pytest.raises(ForbiddenError):
        REFUSED[wish](as_node, site.node, site.system)


@pytest.mark.parametrize("wish", REFUSED)
def test_refused_as_itself(guarded: ClusterSite, account: Client, wish: str) -> None:
    """As itself an agent may do none of that either."""
    with pytest.raises(ForbiddenError):
        REFUSED[wish](account, guarded.node, guarded.system)


def test_words_are_all_it_reads_itself(site: ClusterSite, account: Client, namespace: str) -> None:
    """
    As itself an agent reads ConfigMaps beside it and no others, lists no more than the kill switch,
    and evicts nobody.
    """
    maps = core("namespaces", site.system, "configmaps")

    assert account.get(f"{maps}/{names.POLICY_CONFIGMAP}")
    with pytest.raises(ForbiddenError):
        account.list(maps)
    with pytest.raises(ForbiddenError):
        account.get(core("namespaces", namespace, "configmaps", "kube-root-ca.crt"))
    with pytest.raises(ForbiddenError):
        account.list(core("pods"), {"fieldSelector": f"spec.nodeName={site.node}"})


def test_no_other_node_can_be_impersonated(account: Client, neighbour: str) -> None:
    """An agent's token is good for the node of its pod alone."""
    with pytest.raises(ForbiddenError):
        account.impersonating(f"system:node:{neighbour}").list(
            core("pods"), {"fieldSelector": f"spec.nodeName={neighbour}"}
        )


def test_a_pod_of_its_node_is_told_to_say_whether_it_is_idle(
    site: ClusterSite, as_node: Client, fenced: str, neighbour: str
) -> None:
    """As its node an agent writes conditions of the pods there, and of no other node's."""
    body = {"status": {"conditions": [{"type": names.GPU_IDLE, "status": "True"}]}}
    for name, node in (("a", site.node), ("b", neighbour)):
        site.add_pod(fenced, name, nodeName=node)
    own, other = (f"{core('namespaces', fenced, 'pods', name)}/status" for name in "ab")
    answer = as_node.patch(own, body, PatchType.STRATEGIC)
    types = {item["type"] for item in answer["status"]["conditions"]}

    assert {names.GPU_IDLE, "Ready"} <= types
    with pytest.raises(ForbiddenError):
        as_node.patch(other, body, PatchType.STRATEGIC)


GONE_BY: dict[str, Callable[[Client, str], object]] = {
    "eviction": lambda client, path: client.post(
        f"{path}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}},
    ),
    "deletion": lambda client, path: client.delete(path),
}


@pytest.mark.parametrize("method", GONE_BY)
def test_pods_of_other_nodes_are_safe(
    site: ClusterSite, as_node: Client, fenced: str, neighbour: str, method: str
) -> None:
    """An agent of one node can neither evict nor delete a pod of another one."""
    site.add_pod(fenced, nodeName=neighbour)
    path = core("namespaces", fenced, "pods", "a")

    with pytest.raises(ForbiddenError):
        GONE_BY[method](as_node, path)
    assert "deletionTimestamp" not in site.pod(fenced)["metadata"]


def test_a_node_that_is_not_its_own(site: ClusterSite, neighbour: str) -> None:
    """An agent that takes itself for another node's learns of nothing, and says why."""
    agent = AgentCluster(site.client(), site.settings(node=neighbour))
    agent.start()
    try:
        wait_for(lambda: "GPUFENCE_NODE" in agent.status().trouble or None, agent)
        fresh = agent.pods().fresh
    finally:
        agent.close()

    assert not fresh


def test_plain_rights_are_found(site: ClusterSite, fenced: str) -> None:
    """An account with rights of its own, as on an older Kubernetes, acts by those."""
    made = site.add_pod(fenced)
    admin = site.admin.dedicated()
    # An administrator may impersonate whom it likes, so the setting says not to.
    with site.cluster(admin, impersonation=Impersonation.OFF) as agent:
        result = agent.carry_out(verdict(known(agent, made["metadata"]["uid"]), Action.DELETE))
        status = agent.status()

    assert Identity.PLAIN is status.identity
    assert Answer.ACCEPTED is result.answer


def test_one_annotation_of_its_node(guarded: ClusterSite, account: Client) -> None:
    """An agent writes its node's cards into one annotation, and no other annotation."""
    own = core("nodes", guarded.node)

    def annotate(key: str) -> JsonObject:
        return account.patch(own, {"metadata": {"annotations": {key: "x"}}}, PatchType.MERGE)

    assert "x" == annotate(names.CARDS)["metadata"]["annotations"][names.CARDS]
    with pytest.raises(ForbiddenError):
        annotate("gpufence.io/test")
