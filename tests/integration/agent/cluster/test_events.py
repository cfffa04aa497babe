"""Events as people find them."""

from agent.cluster import AgentCluster
from agent.events.episodes import EventCreate, EventPatch, Notice, about_node, about_pod
from agent.model.pod import PodOnNode
from gpufence import names
from kube import JsonObject, core
from tests.integration.agent.cluster.site import ClusterSite, known, wait_for

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "w",
    "controller": True,
}
OF_SET = {"name": "a", "ownerReferences": [OWNER]}


def notices(pod: PodOnNode, message: str = "3,900 MiB used") -> list[Notice]:
    return [Notice(names.LIMIT_EXCEEDED, about, message) for about in about_pod(pod)]


def found(site: ClusterSite, namespace: str) -> list[JsonObject]:
    return site.admin.list(core("namespaces", namespace, "events")).items


def pod_of(site: ClusterSite, cluster: AgentCluster, namespace: str) -> PodOnNode:
    made = site.add_pod(namespace, metadata=OF_SET)
    return known(cluster, made["metadata"]["uid"])


def test_events_are_read_with_kubectl(
    site: ClusterSite, cluster: AgentCluster, fenced: str
) -> None:
    """The pod's events and its owner's stand where kubectl looks for them."""
    pod = pod_of(site, cluster, fenced)
    cluster.write(EventCreate(10 + n, notice) for n, notice in enumerate(notices(pod)))
    wait_for(lambda: len(found(site, fenced)) == 2 or None, cluster)
    described = site.plane.kubectl("-n", fenced, "describe", "pod", "a").stdout
    listed = site.plane.kubectl("-n", fenced, "events", "--for", "replicaset.apps/web").stdout

    assert "3,900 MiB used" in described
    assert "gpufence-agent" in described
    assert names.LIMIT_EXCEEDED in listed
    assert "<unknown>" not in described + listed


def test_repetitions_are_counted(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """An episode that lasts has one Event with its count and its latest message."""
    notice = notices(pod_of(site, cluster, fenced))[0]
    later = Notice(notice.reason, notice.regarding, "4,000 MiB used")
    cluster.write([EventCreate(20, notice), EventPatch(20, 2, notice), EventPatch(20, 3, later)])
    (event,) = wait_for(
        lambda: [item for item in found(site, fenced) if item["count"] == 3] or None, cluster
    )

    assert 1 == len(found(site, fenced))
    assert "4,000 MiB used" == event["message"]


def test_expired_events_come_again(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """An Event that has expired meanwhile is made anew, with the count it had reached."""
    notice = notices(pod_of(site, cluster, fenced))[0]
    cluster.write([EventCreate(30, notice)])
    (first,) = wait_for(lambda: found(site, fenced) or None, cluster)
    site.admin.delete(core("namespaces", fenced, "events", first["metadata"]["name"]))
    cluster.write([EventPatch(30, 7, notice)])
    (again,) = wait_for(lambda: found(site, fenced) or None, cluster)

    assert 7 == again["count"]
    assert first["metadata"]["name"] != again["metadata"]["name"]
    assert first["firstTimestamp"] == again["firstTimestamp"]


def test_events_of_the_node(site: ClusterSite, cluster: AgentCluster) -> None:
    """`kubectl describe node` shows what concerns no single pod."""
    cluster.write(
        [EventCreate(40, Notice(names.NVML_UNAVAILABLE, about_node(site.node), "no driver"))]
    )

    def described() -> str | None:
        said = site.plane.kubectl("describe", "node", site.node).stdout
        return said if names.NVML_UNAVAILABLE in said else None

    assert "no driver" in wait_for(described, cluster)


def test_a_namespace_that_ends(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """
    Events that a terminating namespace takes no more are counted, and those after them written.
    """
    pod = pod_of(site, cluster, fenced)
    before = cluster.status()
    site.admin.delete(core("namespaces", fenced))
    node = about_node(site.node)
    cluster.write(
        [
            EventCreate(50, notices(pod)[0]),
            EventCreate(51, Notice(names.OVERCOMMITTED, node, "too much")),
        ]
    )
    wait_for(lambda: cluster.status().events_written > before.events_written or None, cluster)

    assert before.events_refused + 1 == cluster.status().events_refused
