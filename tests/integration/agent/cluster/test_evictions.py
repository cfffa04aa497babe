"""Evictions and Events as a real API server takes them."""

from dataclasses import replace
from typing import Any

import pytest

from agent.cluster import AgentCluster
from agent.events.episodes import EventCreate, Notice, about_node, about_pod
from agent.model.decision import Action, ActResult, Answer
from agent.model.pod import PodOnNode
from gpufence import names
from kube import JsonObject, core
from tests.integration.agent.cluster.site import ClusterSite, known, verdict, wait_for

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
OF_JOB = {"name": "a", "labels": {"app": "web"}, "ownerReferences": [OWNER]}


def conditions(pod: JsonObject) -> dict[str, str]:
    return {item["type"]: item.get("reason", "") for item in pod["status"]["conditions"]}


@pytest.fixture
def pod(site: ClusterSite, cluster: AgentCluster, fenced: str) -> PodOnNode:
    """A running pod that may take its time to end."""
    made = site.add_pod(fenced, terminationGracePeriodSeconds=1000)
    return known(cluster, made["metadata"]["uid"])


def test_evicted(site: ClusterSite, cluster: AgentCluster, pod: PodOnNode) -> None:
    """A pod that is evicted terminates within the most grace that an evicted pod gets."""
    result = cluster.carry_out(verdict(pod))
    now = site.pod(pod.namespace)

    assert ActResult(Answer.ACCEPTED) == result
    assert 30 == now["metadata"]["deletionGracePeriodSeconds"]
    assert "EvictionByEvictionAPI" == conditions(now)["DisruptionTarget"]


def test_no_grace_is_a_second(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """A pod that asks for no grace stays in the API until its node says that it has ended."""
    made = site.add_pod(fenced, terminationGracePeriodSeconds=0)
    result = cluster.carry_out(verdict(known(cluster, made["metadata"]["uid"])))

    assert Answer.ACCEPTED is result.answer
    assert 1 == site.pod(fenced)["metadata"]["deletionGracePeriodSeconds"]


@pytest.mark.parametrize(
    ("budgets", "after", "words"),
    [
        ([{}], 0.0, "disruption budget"),
        ([{"observed": False}], 10.0, ""),
        (
            [{"name": "one", "allowed": 1}, {"name": "two", "allowed": 1}],
            0.0,
            "more than one PodDisruptionBudget",
        ),
        ([{"allowed": 1, "pending": 2001}], 0.0, ""),
    ],
    ids=["allows nothing", "not looked at by its controller yet", "two", "cannot be"],
)
def test_blocked_by_budgets(
    site: ClusterSite,
    cluster: AgentCluster,
    pod: PodOnNode,
    budgets: list[dict[str, Any]],
    after: float,
    words: str,
) -> None:
    """Each blocks an eviction, though the API server calls some of that its own error."""
    for each in budgets:
        site.add_budget(pod.namespace, **each)
    result = cluster.carry_out(verdict(pod))

    assert (Answer.BLOCKED, after) == (result.answer, result.after_seconds)
    assert words in result.detail
    assert "deletionTimestamp" not in site.pod(pod.namespace)["metadata"]


def test_deleted_past_a_budget(site: ClusterSite, cluster: AgentCluster, pod: PodOnNode) -> None:
    """A deletion asks no budget."""
    site.add_budget(pod.namespace)
    result = cluster.carry_out(verdict(pod, Action.DELETE))

    assert Answer.ACCEPTED is result.answer
    assert 30 == site.pod(pod.namespace)["metadata"]["deletionGracePeriodSeconds"]


@pytest.mark.parametrize("blocked", [False, True])
def test_job_pods_count_as_failed(
    site: ClusterSite, cluster: AgentCluster, fenced: str, *, blocked: bool
) -> None:
    """
    A Job's pod is deleted without the mark that would keep the Job from counting it, and not where
    a budget would refuse its eviction.
    """
    if blocked:
        site.add_budget(fenced)
    made = site.add_pod(fenced, metadata=OF_JOB)
    pod = known(cluster, made["metadata"]["uid"])
    result = cluster.carry_out(verdict(pod, Action.EVICT_JOB))
    now = site.pod(fenced)

    assert pod.of_job
    assert (Answer.BLOCKED if blocked else Answer.ACCEPTED) is result.answer
    assert blocked == ("deletionTimestamp" not in now["metadata"])
    assert "DisruptionTarget" not in conditions(now)


@pytest.mark.parametrize("action", [Action.EVICT, Action.EVICT_JOB, Action.DELETE])
def test_a_successor_is_spared(
    site: ClusterSite, cluster: AgentCluster, pod: PodOnNode, action: Action
) -> None:
    """A pod that has the name but not the UID is never touched."""
    result = cluster.carry_out(verdict(replace(pod, uid="somebody-else"), action))

    assert Answer.REPLACED is result.answer
    assert "deletionTimestamp" not in site.pod(pod.namespace)["metadata"]


def test_gone(site: ClusterSite, cluster: AgentCluster, pod: PodOnNode) -> None:
    """A pod that is gone is said to be gone, not forbidden."""
    path = core("namespaces", pod.namespace, "pods", pod.name)
    site.admin.delete(path, {"gracePeriodSeconds": 0})

    assert Answer.GONE is cluster.carry_out(verdict(pod)).answer


SET_OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "w",
    "controller": True,
}
OF_SET = {"name": "a", "ownerReferences": [SET_OWNER]}


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
