"""Whose pods they are in the end, and how that owner is released."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.cluster.owners import SeenCluster, StateBuilder
from controller.cluster.projections import (
    BudgetProjection,
    OwnerProjection,
    PodProjection,
    Requirement,
    ScaleTarget,
)
from controller.model import ClusterState, OwnerState, PodState, ReleaseRules
from gpufence import names
from gpufence.idle import IdleRung, write_note
from gpufence.pods import Pod
from kube.informers.views import NamespaceView
from kube.kinds import ApiKind
from kube.owners import ApiOwner, Reference
from tests.support.golden import assert_cases

FILES = Path(__file__).parent
GPU = Pod({}, (), "", {}, {})
DEPLOYMENTS, REPLICA_SETS = (
    ApiKind("apps/v1", kind, f"{kind.lower()}s", scalable=True)
    for kind in ("Deployment", "ReplicaSet")
)
SERVICES = ApiKind("serving.kserve.io/v1beta1", "InferenceService", "inferenceservices")
NOTEBOOKS = ApiKind("kubeflow.org/v1", "Notebook", "notebooks")
WORKLOADS = ApiKind("kueue.x-k8s.io/v1beta1", "Workload", "workloads")
FARMS = ApiKind("example.com/v1", "Farm", "farms", scalable=True)
SETS = ApiKind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "sets", scalable=True)
RELEASE = NamespaceView({names.IDLE: "release"}, {})


def owner(
    name: str, kind: ApiKind = DEPLOYMENTS, above: Reference | None = None, **more: Any
) -> OwnerProjection:
    template = more.pop("template", None)
    said = {"replicas": 1, "annotations": {}, **more}
    return OwnerProjection(
        ApiOwner(kind, "team", name, f"uid-{name}", "7", controller=above, **said), template
    )


def ref(kept: OwnerProjection) -> Reference:
    found = kept.owner
    return Reference(found.kind.api_version, found.kind.kind, found.name, found.uid)


def state(name: str, **more: Any) -> PodState:
    said = {"node": "n", "phase": "Running", "priority": 0, "requests": {}, "gpu": GPU, **more}
    return PodState(
        **{"uid": f"uid-{name}", "namespace": "team", "name": name, "owner": None, **said}
    )


def kept(name: str, above: Reference | None = None, **more: Any) -> PodProjection:
    labels = more.pop("labels", {})
    return PodProjection(state(name, **more), above, labels)


def built(
    *items: PodProjection | OwnerProjection, exempt: str = "kube-system", **more: Any
) -> ClusterState:
    """Put together what the watches know of these pods and owners."""
    said: dict[str, Any] = {
        "nodes": {"n": None},
        "namespaces": {"team": RELEASE},
        "budgets": {},
        "scalers": {},
        "highest": IdleRung.RELEASE,
        **more,
    }
    pods = {item.state.uid: item for item in items if isinstance(item, PodProjection)}
    owners = {item.owner.uid: item for item in items if isinstance(item, OwnerProjection)}
    seen = SeenCluster(now=1.0, fresh=True, pods=pods, owners=owners, **said)
    return StateBuilder(ReleaseRules(), frozenset({exempt})).build(seen)


def shown(found: ClusterState) -> Iterator[str]:
    for each in found.owners.values():
        yield from _owner(each)
    for item in found.pods:
        if item.owner is None:
            yield f"  pod {item.name} of no owner"


def _owner(item: OwnerState) -> Iterator[str]:
    key = item.key
    yield f"  {key.namespace} {key.api_version} {key.kind} {key.name}: {item.way} {item.why_not}"
    pods = ", ".join(f"{pod.name} {pod.leader}".strip() for pod in item.pods)
    yield f"    {item.replicas} replicas of {item.uid} at {item.version}, rung {item.rung}: {pods}"
    if item.unsure:
        yield f"    unsure: {item.unsure}"
    if item.note is not None:
        yield f"    note: {write_note(item.note)}"
    if item.template is not None:
        yield f"    next: {item.template.name} of {item.template.owner and key.name}"
    if item.budget is not None:
        yield f"    budget: {item.budget}"


TOP, SET = owner("w"), owner("w-1", REPLICA_SETS, ref(owner("w")))
SERVICE = owner("s", SERVICES, replicas=None)
JOB = Reference("batch/v1", "Job", "train", "uid-train")
MINE = owner("mine", WORKLOADS, JOB, replicas=None)
FOREIGN = MINE._replace(owner=MINE.owner._replace(namespace="other", name="foreign", uid="uid-f"))
ADMITS = owner("job-s", WORKLOADS, ref(SERVICE), replicas=None)
BOTH = {"team": RELEASE, "other": RELEASE}
REFUSED = {("example.com", "Herd"): "herds cannot be read"}
STALE: dict[str, Any] = {"stale": {("example.com", "Farm"): "farms cannot be read at the moment"}}
KNOWN, LOST = owner("known", FARMS), Reference("example.com/v1", "Farm", "new", "uid-new")
BELOW = owner("below", FARMS, ref(SERVICE))
LEADERS = owner("leaders", REPLICA_SETS, ref(owner("top", SETS)))
LEADER = kept("leader", ref(LEADERS), idle="True")
WORKERS = owner("workers", REPLICA_SETS, Reference("v1", "Pod", "leader", LEADER.state.uid))
CPU_LEADER = kept("leader", ref(LEADERS), gpu=None, node="elsewhere")
NOTE = '{"v":1,"phase":"released","at":"2026-08-01T00:00:00Z","replicas":2,"why":"idle"}'
NOTED = owner("noted", replicas=0, annotations={names.RELEASED: NOTE})
ONE, TWO = (Reference("apps/v1", "ReplicaSet", name, f"uid-{name}") for name in ("one", "two"))
A, B = kept("a", ref(TOP)), kept("b", ref(TOP))
IN_SET = kept("a", ref(SET))
HIGH = 2 * 10**9
COVERS = BudgetProjection("team", (Requirement("app", "In", frozenset(["w"])),), 0)
PLAIN = kept("b", ref(TOP), gpu=None, labels={"app": "w"})


def elsewhere(item: PodProjection) -> PodProjection:
    return item._replace(state=item.state._replace(namespace="other"))


def scaled(kind: str, name: str) -> dict[str, Any]:
    return {"scalers": {ScaleTarget("team", "apps", kind, name): "Scaler s"}}


OWNERS: dict[str, ClusterState] = {
    "the way up ends at the Deployment": built(IN_SET, TOP, SET),
    "pods of one owner are together": built(A, B, TOP),
    "pods without GPUs are shown on GPU nodes alone": built(
        kept("a", gpu=None), kept("b", gpu=None, node="elsewhere")
    ),
    "a namespace that says nothing has no owners": built(kept("a"), namespaces={}),
    "a bare pod": built(kept("a")),
    "a DaemonSet": built(kept("a", Reference("apps/v1", "DaemonSet", "d", "x"))),
    "a kind that may not be read": built(
        kept("a", Reference("example.com/v1", "Herd", "h", "x")), unread=REFUSED
    ),
    "a kind that cannot be scaled": built(kept("a", Reference("a/v1", "Thing", "t", "x"))),
    "a Notebook": built(
        kept("a", ref(owner("n", NOTEBOOKS))), owner("n", NOTEBOOKS, replicas=None)
    ),
    "a Notebook that is stopped": built(
        kept("a", ref(owner("n", NOTEBOOKS))), owner("n", NOTEBOOKS, replicas=None, active=False)
    ),
    "a Workload of an owner that cannot be scaled": built(kept("a", ref(SERVICE)), SERVICE, ADMITS),
    "a Workload of an owner that is not read": built(kept("a", ref(SERVICE)), ADMITS),
    "an owner whose number is elsewhere": built(A, owner("w", replicas=None)),
    "a scaler at the top": built(IN_SET, TOP, SET, **scaled("Deployment", "w")),
    "a scaler below": built(IN_SET, TOP, SET, **scaled("ReplicaSet", "w-1")),
    "a scaler below one with a template": built(
        IN_SET, owner("w", template=state("next")), SET, **scaled("ReplicaSet", "w-1")
    ),
    "scalers that are unknown": built(IN_SET, TOP, SET, blind="Scalers cannot be read"),
    "a kind not read now keeps its own": built(
        kept("a", ref(KNOWN)), kept("b", LOST), kept("c", ref(TOP)), KNOWN, TOP, **STALE
    ),
    "a kind not read now, whose owner is known": built(
        kept("a", ref(BELOW)), SERVICE, BELOW, **STALE
    ),
    "a kind not read now keeps what may be above": built(
        kept("a", ref(BELOW)), kept("b", LOST), SERVICE, BELOW, **STALE
    ),
    "a system's priority": built(kept("a", ref(TOP), priority=HIGH), TOP),
    "an exempt namespace": built(A, TOP, exempt="team"),
    "a note that cannot be read": built(A, owner("w", annotations={names.RELEASED: "{"})),
    "owners without pods, by note or template": built(
        NOTED, owner("templated", replicas=0, template=state("next")), owner("plain", replicas=0)
    ),
    "a note in a namespace that says nothing": built(NOTED, namespaces={}),
    "the kill switch is lower": built(A, TOP, highest=IdleRung.WARN),
    "a namespace that is fenced alone": built(
        A, TOP, namespaces={"team": NamespaceView({names.MODE: "observe"}, {})}
    ),
    "a Workload of another namespace": built(kept("a", JOB), FOREIGN, namespaces=BOTH),
    "beside its own": built(kept("a", JOB), MINE, FOREIGN, namespaces=BOTH),
    "beside its own, the other first": built(kept("a", JOB), FOREIGN, MINE, namespaces=BOTH),
    "a forged owner of another namespace": built(
        elsewhere(kept("f", ref(TOP))), A, TOP, namespaces=BOTH
    ),
    "through a pod that owns others": built(
        *(LEADER, kept("worker", ref(WORKERS), idle="False")),
        *(kept("stray", Reference("v1", "Pod", "gone", "uid-gone")), LEADERS, WORKERS),
        owner("top", SETS),
    ),
    "through no pod of another namespace": built(
        *(elsewhere(LEADER), LEADERS, owner("top", SETS)),
        kept("mine", Reference("v1", "Pod", "leader", LEADER.state.uid)),
    ),
    "a circle": built(
        kept("a", ONE), owner("one", REPLICA_SETS, TWO), owner("two", REPLICA_SETS, ONE)
    ),
    "a budget": built(A, TOP, budgets={"b": BudgetProjection("team", (), 3)}),
    "a budget of a pod without a GPU": built(A, PLAIN, TOP, budgets={"b": COVERS}),
    "pods without a GPU, wherever they run": built(
        *(kept("cpu", ref(SET), gpu=None, node="elsewhere"), kept("gpu", ref(TOP))),
        *(kept("waits", ref(SET), gpu=None, node=""), TOP, SET, owner("other")),
        kept("foreign", ref(owner("other")), gpu=None),
    ),
    "a leader without a GPU": built(
        CPU_LEADER, kept("worker", ref(WORKERS)), LEADERS, WORKERS, owner("top", SETS)
    ),
    "a system's pod without a GPU": built(A, kept("b", ref(TOP), gpu=None, priority=HIGH), TOP),
}


def test_owners_are_those_reviewed() -> None:
    """The topmost owner of its own namespace, how it is released, and why it never is."""
    assert_cases(FILES / "owners.txt", {title: shown(found) for title, found in OWNERS.items()})


def test_what_does_not_change_stays_the_same_object() -> None:
    """A second look makes nothing anew; one at other words does."""
    made = StateBuilder(ReleaseRules(), frozenset())

    def look(top: OwnerProjection) -> OwnerState:
        seen = SeenCluster(
            *(1.0, True, {"uid-a": A}, {"uid-w": top}, {"n": None}, {"team": RELEASE}),  # type: ignore[arg-type]  # a node without figures
            *({}, IdleRung.RELEASE, {}),
        )
        (one,) = made.build(seen).owners.values()
        return one

    first, second = look(TOP), look(TOP)

    assert first.pods[0] is second.pods[0]
    assert first.words is second.words
    assert first.words != look(owner("w", annotations={names.WAKE: "when-free"})).words
