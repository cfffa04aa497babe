"""Every answer to an eviction or a deletion that a real API server gives."""

from dataclasses import replace

import pytest

from agent.cluster import AgentCluster
from agent.model.decision import Action, ActResult, Answer
from agent.model.pod import PodOnNode
from kube import JsonObject, core
from tests.integration.agent.cluster.site import ClusterSite, known, verdict

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


def test_blocked_by_a_budget(site: ClusterSite, cluster: AgentCluster, pod: PodOnNode) -> None:
    """A disruption budget that allows nothing blocks an eviction."""
    site.add_budget(pod.namespace)
    result = cluster.carry_out(verdict(pod))

    assert Answer.BLOCKED is result.answer
    assert "disruption budget" in result.detail
    assert "deletionTimestamp" not in site.pod(pod.namespace)["metadata"]


def test_blocked_by_a_budget_in_progress(
    site: ClusterSite, cluster: AgentCluster, pod: PodOnNode
) -> None:
    """A budget that its controller has not looked at yet blocks too, with a time to come back."""
    site.add_budget(pod.namespace, observed=False)
    result = cluster.carry_out(verdict(pod))

    assert (Answer.BLOCKED, 10.0) == (result.answer, result.after_seconds)


def test_blocked_by_two_budgets(site: ClusterSite, cluster: AgentCluster, pod: PodOnNode) -> None:
    """Several budgets for one pod block it, though the API server calls that its own error."""
    site.add_budget(pod.namespace, "one", allowed=1)
    site.add_budget(pod.namespace, "two", allowed=1)
    result = cluster.carry_out(verdict(pod))

    assert Answer.BLOCKED is result.answer
    assert "more than one PodDisruptionBudget" in result.detail


def test_blocked_by_an_impossible_budget(
    site: ClusterSite, cluster: AgentCluster, pod: PodOnNode
) -> None:
    """A budget in a state that cannot be blocks, though the API server calls that forbidden."""
    site.add_budget(pod.namespace, allowed=1, pending=2001)
    result = cluster.carry_out(verdict(pod))

    assert Answer.BLOCKED is result.answer


def test_deleted_past_a_budget(site: ClusterSite, cluster: AgentCluster, pod: PodOnNode) -> None:
    """A deletion asks no budget."""
    site.add_budget(pod.namespace)
    result = cluster.carry_out(verdict(pod, Action.DELETE))

    assert Answer.ACCEPTED is result.answer
    assert 30 == site.pod(pod.namespace)["metadata"]["deletionGracePeriodSeconds"]


def test_job_pods_count_as_failed(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """A Job's pod is deleted without the mark that would keep the Job from counting it."""
    made = site.add_pod(fenced, metadata=OF_JOB)
    pod = known(cluster, made["metadata"]["uid"])
    result = cluster.carry_out(verdict(pod, Action.EVICT_JOB))
    now = site.pod(fenced)

    assert pod.of_job
    assert Answer.ACCEPTED is result.answer
    assert now["metadata"].get("deletionTimestamp")
    assert "DisruptionTarget" not in conditions(now)


def test_budgets_of_job_pods_count(site: ClusterSite, cluster: AgentCluster, fenced: str) -> None:
    """A Job's pod is not deleted where a budget would refuse its eviction."""
    site.add_budget(fenced)
    made = site.add_pod(fenced, metadata=OF_JOB)
    pod = known(cluster, made["metadata"]["uid"])
    result = cluster.carry_out(verdict(pod, Action.EVICT_JOB))

    assert Answer.BLOCKED is result.answer
    assert "deletionTimestamp" not in site.pod(fenced)["metadata"]


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


@pytest.mark.parametrize("reason", ["terminating", "mode", "kill switch", "no kill switch"])
def test_cancelled(site: ClusterSite, cluster: AgentCluster, pod: PodOnNode, reason: str) -> None:
    """What the last look finds counts, even before the watches have told of it."""
    path = core("namespaces", pod.namespace, "pods", pod.name)
    if reason == "terminating":
        site.admin.delete(path)
    elif reason == "mode":
        site.label(pod.namespace, "cap")
    elif reason == "kill switch":
        site.set_policy("observe")
    else:
        site.set_policy(None)
    result = cluster.carry_out(verdict(pod))
    site.set_policy("evict")

    assert Answer.CANCELLED is result.answer
