"""Pods without a GPU are their owners' too: a release would end them."""

from controller.cluster.projections import BudgetProjection, Requirement
from kube.kinds import ApiKind
from kube.owners import Reference
from tests.unit.controller.cluster.test_owners import (
    REPLICA_SETS,
    assembled,
    kept,
    only,
    owner,
    reference,
)


def test_pods_without_gpus_are_their_owners_wherever_they_run() -> None:
    """A leader, or what a roll-out has left half-way; those of other owners stay nobody's."""
    top, other = owner("w"), owner("other")
    new = owner("w-2", REPLICA_SETS, reference(top))
    pods = (
        kept("cpu", reference(new), gpu=None, node="elsewhere"),
        kept("unscheduled", reference(new), gpu=None, node=""),
        kept("foreign", reference(other), gpu=None),
        kept("gpu", reference(top)),
    )
    found = assembled(*pods, owners=(top, new, other))

    assert ["gpu", "cpu", "unscheduled"] == [pod.name for pod in only(found).pods]
    assert {"foreign": None, "gpu": only(found).key} == {pod.name: pod.owner for pod in found.pods}


def test_a_leader_without_a_gpu_is_its_groups_owners() -> None:
    """As its workers, whose way up leads through it."""
    sets = ApiKind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "sets", scalable=True)
    top = owner("top", sets)
    leaders = owner("leaders", REPLICA_SETS, reference(top))
    leader = kept("leader", reference(leaders), gpu=None, node="elsewhere")
    workers = owner("workers", REPLICA_SETS, Reference("v1", "Pod", "leader", leader.state.uid))
    found = assembled(leader, kept("worker", reference(workers)), owners=(top, leaders, workers))

    assert ["worker", "leader"] == [pod.name for pod in only(found).pods]


def test_a_systems_pod_without_a_gpu_keeps_its_owner() -> None:
    """A release takes it along."""
    top = owner("w")
    pods = kept("a", reference(top)), kept("b", reference(top), gpu=None, priority=2 * 10**9)

    assert (
        "its priority is one of the system's own" == only(assembled(*pods, owners=(top,))).why_not
    )


def test_a_budget_counts_pods_without_gpus() -> None:
    """They would go, too."""
    top = owner("w")
    pods = kept("a", reference(top)), kept("b", reference(top), gpu=None, labels={"app": "w"})
    covers = BudgetProjection("team", (Requirement("app", "In", frozenset(["w"])),), 0)
    found = only(assembled(*pods, owners=(top,), budgets={"b": covers}))

    assert 0 == found.budget
