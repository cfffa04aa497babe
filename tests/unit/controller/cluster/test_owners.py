"""Who owns pods in the end, and what stands against a release whatever anybody does."""

from typing import Any

import pytest

from controller.cluster.owners import SeenCluster, StateBuilder
from controller.cluster.projections import (
    BudgetProjection,
    OwnerProjection,
    PodProjection,
    ScaleTarget,
)
from controller.model import ClusterState, OwnerKey, OwnerState, PodState, ReleaseRules, Way
from gpufence import names
from gpufence.idle import IdleRung
from gpufence.pods import Pod
from kube.informers.views import NamespaceView
from kube.kinds import ApiKind
from kube.owners import ApiOwner, Reference

GPU = Pod({}, (), "", {}, {})
DEPLOYMENTS = ApiKind("apps/v1", "Deployment", "deployments", scalable=True)
REPLICA_SETS = ApiKind("apps/v1", "ReplicaSet", "replicasets", scalable=True)
SERVICES = ApiKind("serving.kserve.io/v1beta1", "InferenceService", "inferenceservices")
NOTEBOOKS = ApiKind("kubeflow.org/v1", "Notebook", "notebooks")
WORKLOADS = ApiKind("kueue.x-k8s.io/v1beta1", "Workload", "workloads")
RELEASE = NamespaceView({names.IDLE: "release"}, {})


def owner(
    name: str, kind: ApiKind = DEPLOYMENTS, above: Reference | None = None, **more: Any
) -> OwnerProjection:
    template = more.pop("template", None)
    said = {"replicas": 1, "annotations": {}, **more}
    found = ApiOwner(kind, "team", name, f"uid-{name}", "7", controller=above, **said)
    return OwnerProjection(found, template)


def reference(kept: OwnerProjection) -> Reference:
    found = kept.owner
    return Reference(found.kind.api_version, found.kind.kind, found.name, found.uid)


def state(name: str, **more: Any) -> PodState:
    said = {"node": "n", "phase": "Running", "priority": 0, "requests": {}, "gpu": GPU, **more}
    return PodState(uid=f"uid-{name}", namespace="team", name=name, owner=None, **said)


def kept(name: str, above: Reference | None = None, **more: Any) -> PodProjection:
    labels = more.pop("labels", {})
    return PodProjection(state(name, **more), above, labels)


def seen(
    *pods: PodProjection, owners: tuple[OwnerProjection, ...] = (), **more: Any
) -> SeenCluster:
    said: dict[str, Any] = {
        "nodes": {"n": None},
        "namespaces": {"team": RELEASE},
        "budgets": {},
        "scalers": {},
        "highest": IdleRung.RELEASE,
        **more,
    }
    return SeenCluster(
        now=1.0,
        fresh=True,
        pods={pod.state.uid: pod for pod in pods},
        owners={item.owner.uid: item for item in owners},
        **said,
    )


def assembled(
    *pods: PodProjection, owners: tuple[OwnerProjection, ...] = (), **more: Any
) -> ClusterState:
    made = StateBuilder(ReleaseRules(), frozenset({"kube-system"}))
    return made.build(seen(*pods, owners=owners, **more))


def only(found: ClusterState) -> OwnerState:
    (one,) = found.owners.values()
    return one


def test_the_way_up_ends_at_the_deployment() -> None:
    """Its pods carry its key, and it can be scaled."""
    top = owner("w")
    middle = owner("w-1", REPLICA_SETS, reference(top))
    found = only(assembled(kept("a", reference(middle)), owners=(top, middle)))

    assert (OwnerKey("team", "apps/v1", "Deployment", "w"), Way.SCALE) == (found.key, found.way)
    assert [found.key] == [pod.owner for pod in found.pods]
    assert (1, "uid-w", "7") == (found.replicas, found.uid, found.version)


def test_what_does_not_change_stays_the_same_object() -> None:
    """A second look makes nothing anew; one at other pods or words does."""
    top = owner("w")
    pod = kept("a", reference(top))
    made = StateBuilder(ReleaseRules(), frozenset())
    first, second = (made.build(seen(pod, owners=(top,))) for _ in range(2))
    other = made.build(seen(pod, owners=(owner("w", annotations={names.WAKE: "when-free"}),)))

    assert only(first).pods[0] is only(second).pods[0]
    assert only(first).words is only(second).words
    assert only(first).words != only(other).words


def test_pods_without_gpus_are_shown_on_gpu_nodes_alone() -> None:
    """There they take room."""
    found = assembled(kept("a", gpu=None), kept("b", gpu=None, node="elsewhere"))

    assert ["a"] == [pod.name for pod in found.pods]


def test_gpu_pods_elsewhere_are_shown_without_an_owner() -> None:
    """They may wait; whose they are is no business of ours."""
    found = assembled(kept("a"), namespaces={})

    assert ({}, [None]) == (found.owners, [pod.owner for pod in found.pods])


REFUSED = {("example.com", "Herd"): "herds cannot be read"}
ABOVE = {
    "nobody": (None, "a bare pod would not be made again"),
    "DaemonSet": (Reference("apps/v1", "DaemonSet", "d", "x"), "a DaemonSet has a pod on each"),
    "unread": (Reference("example.com/v1", "Herd", "h", "x"), "herds cannot be read"),
    "unknown": (Reference("a/v1", "Thing", "t", "x"), "Thing t owns it, which cannot be scaled"),
}


@pytest.mark.parametrize(("above", "expected"), ABOVE.values(), ids=ABOVE)
def test_what_cannot_be_brought_back_is_never_released(
    above: Reference | None, expected: str
) -> None:
    """The reason is a sentence."""
    found = only(assembled(kept("a", above), unread=REFUSED))

    assert Way.NEVER is found.way
    assert found.why_not.startswith(expected)


def test_a_notebook_is_stopped_as_a_whole() -> None:
    """It has one replica, or none once it is stopped."""
    top = owner("n", NOTEBOOKS, replicas=None)
    found = only(assembled(kept("a", reference(top)), owners=(top,)))
    stopped = owner("n", NOTEBOOKS, replicas=None, active=False)
    gone = only(assembled(kept("a", reference(top)), owners=(stopped,)))

    assert (Way.NOTEBOOK, 1, 0) == (found.way, found.replicas, gone.replicas)


@pytest.mark.parametrize("known", [True, False])
def test_what_kueue_admits_is_its_workload(known: bool) -> None:  # noqa: FBT001 (a parameter)
    """Of a Job that nobody reads, and of an owner that cannot be scaled."""
    top = owner("s", SERVICES, replicas=None)
    above = reference(top)
    workload = owner("job-s", WORKLOADS, above, replicas=None)
    owners = (top, workload) if known else (workload,)
    found = only(assembled(kept("a", above), owners=owners))

    assert (Way.WORKLOAD, "job-s") == (found.way, found.key.name)


def test_an_owner_whose_number_is_elsewhere_is_left_alone() -> None:
    """Nobody knows what to bring back."""
    top = owner("w", replicas=None)
    found = only(assembled(kept("a", reference(top)), owners=(top,)))

    assert Way.NEVER is found.way
    assert "where nobody reads it" in found.why_not


def test_who_is_scaled_by_somebody_else_is_left_alone() -> None:
    """At the top, below it, or at an unknown place."""
    top = owner("w")
    middle = owner("w-1", REPLICA_SETS, reference(top))
    pod = kept("a", reference(middle))
    aims: dict[str, dict[str, Any]] = {
        "at the top": {"scalers": {ScaleTarget("team", "apps", "Deployment", "w"): "Scaler s"}},
        "below": {"scalers": {ScaleTarget("team", "apps", "ReplicaSet", "w-1"): "Scaler s"}},
        "unknown": {"blind": "Scalers cannot be read"},
    }
    said = {
        what: only(assembled(pod, owners=(top, middle), **more)).why_not
        for what, more in aims.items()
    }

    assert {
        "at the top": "Scaler s scales it",
        "below": "Scaler s scales ReplicaSet w-1 below it",
        "unknown": "Scalers cannot be read",
    } == said


def test_who_scales_below_an_owner_that_is_known_without_pods_is_named() -> None:
    """That its template asks for a GPU, or its note is there, does not hide it."""
    top = owner("w", template=state("next"))
    middle = owner("w-1", REPLICA_SETS, reference(top))
    scalers = {ScaleTarget("team", "apps", "ReplicaSet", "w-1"): "Scaler s"}
    found = assembled(kept("a", reference(middle)), owners=(top, middle), scalers=scalers)

    assert "Scaler s scales ReplicaSet w-1 below it" == only(found).why_not


FARMS = ApiKind("example.com/v1", "Farm", "farms", scalable=True)
STALE = {("example.com", "Farm"): "farms cannot be read at the moment"}


def test_a_kind_that_cannot_be_read_at_the_moment_keeps_its_own() -> None:
    """Who is of that kind stays, whether it is still known or not; Kubernetes' own kinds do not."""
    known, other = owner("known", FARMS), owner("other")
    new = Reference("example.com/v1", "Farm", "new", "uid-new")
    pods = kept("a", reference(known)), kept("b", new), kept("c", reference(other))
    found = assembled(*pods, owners=(known, other), stale=STALE)
    why = STALE["example.com", "Farm"]

    stays, goes = (Way.NEVER, why, why), (Way.SCALE, "", "")
    assert {"known": stays, "new": stays, "other": goes} == {
        key.name: (each.way, each.why_not, each.unsure) for key, each in found.owners.items()
    }


def test_a_kind_that_cannot_be_read_keeps_whose_pods_may_be_below_it() -> None:
    """
    Nobody knows who is above a pod of such a kind: it may be any other owner of its namespace.
    """
    key, top = OwnerKey("team", SERVICES.api_version, "InferenceService", "s"), owner("s", SERVICES)
    below = owner("below", FARMS, reference(top))
    known, lost = kept("a", reference(below)), Reference("example.com/v1", "Farm", "x", "y")
    whole = assembled(known, owners=(top, below), stale=STALE)
    partly = assembled(known, kept("b", lost), owners=(top, below), stale=STALE)

    assert "" == whole.owners[key].unsure
    assert STALE["example.com", "Farm"] == partly.owners[key].unsure


def test_the_systems_own_are_left_alone() -> None:
    """By namespace, and by priority."""
    top = owner("w")
    high = only(assembled(kept("a", reference(top), priority=2 * 10**9), owners=(top,)))
    made = StateBuilder(ReleaseRules(), frozenset({"team"}))
    exempt = only(made.build(seen(kept("a", reference(top)), owners=(top,))))

    assert "its priority is one of the system's own" == high.why_not
    assert "namespace team is exempt" == exempt.why_not


def test_a_note_nobody_can_read_leaves_its_owner_alone() -> None:
    """Nobody can tell what it was."""
    top = owner("w", annotations={names.RELEASED: "{"})
    found = only(assembled(kept("a", reference(top)), owners=(top,)))

    assert (Way.NEVER, None) == (found.way, found.note)
    assert "left alone" in found.why_not


NOTE = '{"v":1,"phase":"released","at":"2026-08-01T00:00:00Z","replicas":2,"why":"idle"}'


def test_owners_without_pods_are_known_by_note_or_template() -> None:
    """Others, and those of namespaces that say nothing, are not."""
    noted = owner("noted", replicas=0, annotations={names.RELEASED: NOTE})
    templated = owner("templated", replicas=0, template=state("next"))
    found = assembled(owners=(noted, templated, owner("plain", replicas=0)))
    elsewhere = assembled(owners=(noted,), namespaces={})

    assert ["noted", "templated"] == sorted(key.name for key in found.owners)
    assert {} == elsewhere.owners
    template = found.owners[OwnerKey("team", "apps/v1", "Deployment", "templated")].template
    assert template is not None
    assert template.owner is not None


def test_the_lower_of_label_and_kill_switch_counts() -> None:
    """A namespace that says nothing has none."""
    top = owner("w")
    pod = kept("a", reference(top))
    fenced = NamespaceView({names.MODE: "observe"}, {})
    rungs = [
        only(assembled(pod, owners=(top,), highest=IdleRung.WARN)).rung,
        only(assembled(pod, owners=(top,), namespaces={"team": fenced})).rung,
    ]

    assert [IdleRung.WARN, None] == rungs


def test_pods_of_one_owner_are_together() -> None:
    """The way up is gone once."""
    top = owner("w")
    found = only(assembled(*(kept(name, reference(top)) for name in "ab"), owners=(top,)))

    assert ["a", "b"] == [pod.name for pod in found.pods]


def test_a_workload_of_another_namespace_is_nobodys_owner() -> None:
    """A tenant may write the UID of anybody's Job as what his Workload admits."""
    job = Reference("batch/v1", "Job", "train", "uid-train")
    mine = owner("mine", WORKLOADS, job, replicas=None)
    foreign = owner("foreign", WORKLOADS, job, replicas=None)
    foreign = foreign._replace(owner=foreign.owner._replace(namespace="other"))
    spaces = {"team": RELEASE, "other": RELEASE}
    alone = only(assembled(kept("a", job), owners=(foreign,), namespaces=spaces))
    both = [
        only(assembled(kept("a", job), owners=owners, namespaces=spaces)).key.name
        for owners in ((mine, foreign), (foreign, mine))
    ]

    assert Way.NEVER is alone.way
    assert "a Job ends by itself" == alone.why_not
    assert ["mine", "mine"] == both


def test_nobody_counts_among_the_pods_of_another_namespace() -> None:
    """Whatever owner a tenant writes on his own."""
    top = owner("w")
    forged = kept("f", reference(top))
    forged = forged._replace(state=forged.state._replace(namespace="other"))
    spaces = {"team": RELEASE, "other": RELEASE}
    found = assembled(forged, kept("a", reference(top)), owners=(top,), namespaces=spaces)

    assert {"team": ["a"], "other": ["f"]} == {
        key.namespace: [pod.name for pod in item.pods] for key, item in found.owners.items()
    }


def test_the_way_up_leads_through_a_pod_that_owns_others() -> None:
    """
    As in a LeaderWorkerSet, whose leaders own the StatefulSets of their workers: all are one
    owner's, so that idle leaders do not take workers along that work.
    """
    top = owner(
        "top", ApiKind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "sets", scalable=True)
    )
    leaders = owner("leaders", REPLICA_SETS, reference(top))
    leader = kept("leader", reference(leaders), idle="True")
    above = Reference("v1", "Pod", "leader", leader.state.uid)
    workers = owner("workers", REPLICA_SETS, above)
    worker = kept("worker", reference(workers), idle="False")
    stray = kept("stray", Reference("v1", "Pod", "gone", "uid-gone"))

    found = assembled(leader, worker, stray, owners=(top, leaders, workers))
    by_name = {key.name: each for key, each in found.owners.items()}

    assert {"top", "gone"} == by_name.keys()
    assert [("leader", ""), ("worker", leader.state.uid)] == [
        (pod.name, pod.leader) for pod in by_name["top"].pods
    ]
    assert Way.SCALE is by_name["top"].way
    assert Way.NEVER is by_name["gone"].way


def test_the_way_up_leads_through_no_pod_of_another_namespace() -> None:
    """Whoever writes its UID on his own pods is not above them."""
    top = owner("top")
    leader = kept("leader", reference(top))
    theirs = leader._replace(state=leader.state._replace(namespace="other"))
    mine = kept("mine", Reference("v1", "Pod", "leader", leader.state.uid))

    found = assembled(theirs, mine, owners=(top,))

    assert [Way.NEVER] == [each.way for key, each in found.owners.items() if key.name == "leader"]


def test_a_circle_of_owners_ends() -> None:
    """Somebody may have made one by hand."""
    one = Reference("apps/v1", "ReplicaSet", "one", "uid-one")
    two = Reference("apps/v1", "ReplicaSet", "two", "uid-two")
    owners = (owner("one", REPLICA_SETS, two), owner("two", REPLICA_SETS, one))

    assert assembled(kept("a", one), owners=owners).owners


def test_budgets_of_the_namespace_count() -> None:
    """The owner says how many of its pods may go at once."""
    top = owner("w")
    pod = kept("a", reference(top), labels={"app": "w"})
    found = only(assembled(pod, owners=(top,), budgets={"b": BudgetProjection("team", (), 3)}))

    assert 3 == found.budget
