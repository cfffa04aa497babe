"""Owners of every kind and what else scales them: how each is released, and which never are."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from kube import JsonObject, PatchType, core, group
from kube.kinds import ApiKind
from simulator.controlplane import ControlPlane
from tests.support.controller.gate import Gate
from tests.support.controller.site import ControllerSite, worker
from tests.support.objects import (
    FARMS,
    HERDS,
    NOTEBOOKS,
    ROLLOUTS,
    SCALED_OBJECTS,
    WORKLOADS,
    controlled,
    crd,
    define,
    unconvertible,
    undefine,
)
from tests.support.observing import eventually, wait_until
from tests.support.site import Site

NOTEBOOK = ApiKind("kubeflow.org/v1", "Notebook", "notebooks")
WORKLOAD = ApiKind("kueue.x-k8s.io/v1beta1", "Workload", "workloads")
FARM = ApiKind("example.com/v1", "Farm", "farms", scalable=True)
HERD = ApiKind("example.com/v1", "Herd", "herds", scalable=True)
ROLLOUT = ApiKind("argoproj.io/v1alpha1", "Rollout", "rollouts", scalable=True)
COOP = ApiKind("example.org/v1", "Coop", "coops", scalable=True)
COOPS = unconvertible(crd("example.org/v1", "Coop", "coops", scale=".spec.replicas"), "v2")
REPLICA_SET = ApiKind("apps/v1", "ReplicaSet", "replicasets", scalable=True)
STATEFUL = ApiKind("apps/v1", "StatefulSet", "statefulsets", scalable=True)

RBAC = "rbac.authorization.k8s.io/v1"
ROLE = "gpufence-test-farms"
UNREADABLE = "coops.example.org cannot be read at the moment"


@pytest.fixture(scope="module", autouse=True)
def defined(full_control_plane: ControlPlane, shared_site: ControllerSite) -> Iterator[None]:
    """Define the foreign kinds, and grant what an operator would for his own one."""
    definitions = (NOTEBOOKS, WORKLOADS, FARMS, HERDS, ROLLOUTS, COOPS)
    with Site(full_control_plane.kubeconfig(), full_control_plane.kubectl) as site:
        define(site.admin, *definitions)
        site.apply(
            {
                "apiVersion": RBAC,
                "kind": "ClusterRole",
                "metadata": {"name": ROLE, "labels": {names.AGGREGATE: "true"}},
                "rules": [
                    {
                        "apiGroups": ["example.com", "example.org", "argoproj.io"],
                        "resources": ["farms", "coops", "rollouts"],
                        "verbs": ["get", "list", "watch", "patch"],
                    },
                    {
                        "apiGroups": ["example.com", "example.org", "argoproj.io"],
                        "resources": ["farms/scale", "rollouts/scale"],
                        "verbs": ["update"],
                    },
                ],
            }
        )
        wait_until(lambda: _gathered(site))
        yield
        site.admin.delete(group(RBAC, "clusterroles", ROLE))
        undefine(site.admin, *definitions)
    del shared_site


def _gathered(site: Site) -> bool:
    role = site.admin.get(group(RBAC, "clusterroles", f"{names.CONTROLLER}-kinds"))
    return "farms/scale" in str(role.get("rules"))


def owned_pod(site: ControllerSite, namespace: str, owner: JsonObject, name: str) -> None:
    """Make a pod as the controller of a kind that only its operator knows would."""
    template = worker(name)["spec"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": template}
    site.admin.post(core("namespaces", namespace, "pods"), controlled(pod, owner))


def made(
    site: ControllerSite, namespace: str, kind: ApiKind, name: str = "mine", **spec: Any
) -> JsonObject:
    item = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return site.admin.post(kind.path(namespace), item)


def stateful_set(name: str, replicas: int) -> JsonObject:
    made: JsonObject = {**worker(name, replicas), "kind": "StatefulSet"}
    made["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return made


ADMITS: dict[str, Any] = {
    "apiVersion": WORKLOAD.api_version,
    "kind": "Workload",
    "metadata": {"name": "train"},
    "spec": {"queueName": "q", "active": True, "podSets": [{"name": "main", "count": 1}]},
}
GOES = {"book": NOTEBOOK, "train": WORKLOAD, "farm": FARM, "roll": ROLLOUT, "set": STATEFUL}


def test_owners_of_every_kind_are_released(site: ControllerSite, full_namespace: str) -> None:
    """
    A Notebook by Kubeflow's own annotation, a Job by its Workload, others by their scale; what is
    below them is left alone, as is every other field.
    """
    site.fence(full_namespace)
    template: dict[str, Any] = {"spec": {"containers": []}}
    book = made(site, full_namespace, NOTEBOOK, "book", template=template)
    site.admin.post(STATEFUL.path(full_namespace), controlled(stateful_set("book", 1), book))
    job = made_job(site, full_namespace, "train")
    site.admin.post(WORKLOAD.path(full_namespace), controlled(ADMITS, job))
    owned_pod(site, full_namespace, made(site, full_namespace, FARM, "farm", replicas=3), "farm-0")
    roll = made(site, full_namespace, ROLLOUT, "roll", replicas=2)
    below = {**worker("roll-1", 2), "kind": "ReplicaSet"}
    site.admin.post(REPLICA_SET.path(full_namespace), controlled(below, roll))
    site.admin.post(STATEFUL.path(full_namespace), stateful_set("set", 2))
    with site.controller() as controller:
        for name, kind in GOES.items():
            wait_until(partial(_is_released, site, full_namespace, name, kind), controller.lines)

    notes = [site.note(full_namespace, name, GOES[name]) for name in ("farm", "roll", "set")]
    stopped = site.owner(full_namespace, "book", NOTEBOOK).annotations[names.STOPPED]
    spec = site.admin.get(WORKLOAD.path(full_namespace, "train"))["spec"]
    assert [3, 2, 2] == [note.replicas for note in notes if note is not None]
    assert [0, 0, 0] == [
        site.replicas(full_namespace, name, GOES[name]) for name in ("farm", "roll", "set")
    ]
    assert (True, {**ADMITS["spec"], "active": False}) == (stopped.startswith("20"), spec)
    assert 1 == site.replicas(full_namespace, "book", STATEFUL)
    assert 2 == site.replicas(full_namespace, "roll-1", REPLICA_SET)


def _is_released(site: ControllerSite, namespace: str, name: str, kind: ApiKind) -> bool:
    return site.phase(namespace, name, kind) == "released"


def made_job(site: ControllerSite, namespace: str, name: str) -> JsonObject:
    template = worker(name)["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    template["metadata"] = {}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template},
    }
    return site.admin.post(group("batch/v1", "namespaces", namespace, "jobs"), job)


def test_a_kind_that_cannot_be_read_keeps_its_own_alone(
    site: ControllerSite, full_namespace: str
) -> None:
    """
    What was to convert it does not answer, or rights are missing: its owners stay, which is said
    with what helps, and all others are released as ever.
    """
    site.fence(full_namespace)
    owned_pod(site, full_namespace, made(site, full_namespace, HERD, "herd", size=3), "herd-0")
    owned_pod(site, full_namespace, made(site, full_namespace, COOP, "coop", replicas=1), "coop-0")
    site.deploy(full_namespace, "other")
    try:
        with site.controller(GPUFENCE_ACTIVITY_AUTH="none") as controller:
            # Until the kind is found it is taken for one that cannot be scaled.
            wait_until(
                lambda: UNREADABLE in controller.why_never(full_namespace, "coop"),
                controller.lines,
            )
            wait_until(
                lambda: names.AGGREGATE in controller.why_never(full_namespace, "herd"),
                controller.lines,
            )
            said = controller.why_never(full_namespace, "herd")
            wait_until(lambda: site.phase(full_namespace, "other") == "released", controller.lines)
            busy = controller.activity(f"{full_namespace}/coops/coop")[0]
            fresh = controller.metrics()["gpufence_controller_fresh"]
    finally:
        site.admin.delete(COOP.path(full_namespace, "coop"))

    assert (1, 503) == (fresh, busy)
    assert "herds.example.com cannot be read" in said


def test_a_leader_without_a_gpu_keeps_its_group(site: ControllerSite, full_namespace: str) -> None:
    """Nobody measures what it does, wherever it runs; an operator may have it ignored."""
    site.fence(full_namespace)
    owner = made(site, full_namespace, FARM, replicas=1)
    owned_pod(site, full_namespace, owner, "mine-0")
    leader: dict[str, Any] = worker("mine-leader")["spec"]["template"]
    leader["spec"]["containers"][0].pop("resources")
    pod = {"apiVersion": "v1", "kind": "Pod", **leader, "metadata": {"name": "mine-leader"}}
    path = core("namespaces", full_namespace, "pods")
    site.admin.post(path, controlled(pod, owner))
    with site.controller() as controller:
        wait_until(
            lambda: "asks for no GPU" in controller.owner(full_namespace, "mine").get("why", ""),
            controller.lines,
        )
        site.outlast(full_namespace)
        before = site.replicas(full_namespace, "mine", FARM)
        said = {"metadata": {"annotations": {names.PODS_WITHOUT_GPU: "ignore"}}}
        site.admin.patch(FARM.path(full_namespace, "mine"), said, PatchType.MERGE)
        wait_until(lambda: site.phase(full_namespace, "mine", FARM) == "released", controller.lines)

    assert (1, 0) == (before, site.replicas(full_namespace, "mine", FARM))


PAUSED = {"autoscaling.keda.sh/paused": "true", "autoscaling.keda.sh/paused-replicas": "1"}
BY_QUEUE: JsonObject = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "by-queue", "annotations": PAUSED},
    "spec": {"scaleTargetRef": {"name": "worker"}},
}


def scaled_by_keda(site: ControllerSite, namespace: str) -> None:
    """Let KEDA scale the worker, though it is paused."""
    path = group("keda.sh/v1alpha1", "namespaces", namespace, "scaledobjects")
    site.admin.post(path, BY_QUEUE)


def test_what_keda_scales_is_never_released_though_it_came_later(
    site: ControllerSite, full_namespace: str
) -> None:
    """A kind that is defined while the controller runs is found within its time."""
    site.fence(full_namespace)
    site.played.busy.add("worker")
    site.deploy(full_namespace, "worker")
    with site.controller() as controller:
        wait_until(lambda: controller.owner(full_namespace, "worker").get("state") == "busy")
        define(site.admin, SCALED_OBJECTS)
        try:
            scaled_by_keda(site, full_namespace)
            said = controller.why_never(full_namespace, "worker")
            site.played.busy.clear()
            site.outlast(full_namespace)
            wanted = site.replicas(full_namespace, "worker")
        finally:
            undefine(site.admin, SCALED_OBJECTS)
        wait_until(lambda: site.phase(full_namespace, "worker") == "released", controller.lines)

    assert said.endswith("ScaledObject by-queue scales it")
    assert 1 == wanted


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_what_keda_scales_is_never_released_while_nobody_says_what_there_is_of_keda(
    site: ControllerSite, full_namespace: str, tmp_path: Path, *, known: bool
) -> None:
    """
    Discovery of its group alone fails, after it was known or from the first moment on; also where
    KEDA does nothing for now, since somebody has paused it.
    """
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker")
    define(site.admin, SCALED_OBJECTS)
    scaled_by_keda(site, full_namespace)
    token = site.plane.service_account_token(site.system, names.CONTROLLER)
    try:
        with Gate(site.plane) as gate:
            through = str(gate.kubeconfig(tmp_path, token))
            if not known:
                gate.refuse(lambda _, path: path == "/apis/keda.sh/v1alpha1")
            with site.controller(KUBECONFIG=through) as controller:
                if known:
                    controller.why_never(full_namespace, "worker")
                    gate.refuse(lambda _, path: path == "/apis/keda.sh/v1alpha1")
                wait_until(gate.refused.is_set, controller.lines)
                kept = not eventually(lambda: site.replicas(full_namespace, "worker") == 0, 2.0)
                gate.let_in()
                said = controller.why_never(full_namespace, "worker")
    finally:
        undefine(site.admin, SCALED_OBJECTS)

    assert kept
    assert said.endswith("ScaledObject by-queue scales it")


def test_nobody_is_scaled_while_autoscalers_cannot_be_read(
    site: ControllerSite, full_namespace: str
) -> None:
    """Without the right to read HorizontalPodAutoscalers it is unknown what they scale."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker")
    path = group(RBAC, "clusterroles", names.CONTROLLER)
    role = site.admin.get(path)
    less = [rule for rule in role["rules"] if rule["apiGroups"] != ["autoscaling"]]
    site.admin.put(path, {**role, "rules": less})
    try:
        with site.controller() as controller:
            said = controller.why_never(full_namespace, "worker")
            kept = not eventually(lambda: site.replicas(full_namespace, "worker") == 0, 1.2)
            now = site.admin.get(path)
            site.admin.put(path, {**now, "rules": role["rules"]})
            wait_until(lambda: site.phase(full_namespace, "worker") == "released")
    finally:
        now = site.admin.get(path)
        site.admin.put(path, {**now, "rules": role["rules"]})

    assert "horizontalpodautoscalers.autoscaling cannot be read" in said
    assert kept
