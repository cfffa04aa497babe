"""Owners of every kind: those that are released in a way of their own, and those that never are."""

from collections.abc import Iterator
from typing import Any

import pytest

from gpufence import names
from kube import JsonObject, NotFoundError, PatchType, core, group
from kube.kinds import ApiKind
from simulator.controlplane import ControlPlane
from tests.support.controller.site import DEPLOYMENTS, ControllerSite, worker
from tests.support.objects import (
    FARMS,
    HERDS,
    NOTEBOOKS,
    ROLLOUTS,
    WORKLOADS,
    controlled,
    crd,
    define,
    unconvertible,
    undefine,
)
from tests.support.observing import wait_until
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


def made(site: ControllerSite, namespace: str, kind: ApiKind, **spec: Any) -> JsonObject:
    item = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "mine"},
        "spec": spec,
    }
    return site.admin.post(kind.path(namespace), item)


def test_a_notebook_is_stopped(site: ControllerSite, full_namespace: str) -> None:
    """By the annotation that Kubeflow's own interface writes; its StatefulSet is left alone."""
    site.fence(full_namespace)
    notebook = made(site, full_namespace, NOTEBOOK, template={"spec": {"containers": []}})
    stateful: dict[str, Any] = {**worker("mine"), "kind": "StatefulSet"}
    stateful["spec"]["serviceName"] = "mine"
    site.admin.post(STATEFUL.path(full_namespace), controlled(stateful, notebook))
    with site.controller() as controller:
        wait_until(
            lambda: site.phase(full_namespace, "mine", NOTEBOOK) == "released", controller.lines
        )

    found = site.owner(full_namespace, "mine", NOTEBOOK)
    assert found.annotations[names.STOPPED].startswith("20")
    assert 1 == site.replicas(full_namespace, "mine", STATEFUL)


def test_a_workload_is_deactivated(site: ControllerSite, full_namespace: str) -> None:
    """A Job that Kueue admits goes by its Workload, and no other field of that changes."""
    site.fence(full_namespace)
    job = made_job(site, full_namespace, "train")
    item: dict[str, Any] = {
        "apiVersion": WORKLOAD.api_version,
        "kind": "Workload",
        "metadata": {"name": "job-train"},
        "spec": {"queueName": "q", "active": True, "podSets": [{"name": "main", "count": 1}]},
    }
    site.admin.post(WORKLOAD.path(full_namespace), controlled(item, job))
    with site.controller() as controller:
        wait_until(
            lambda: site.phase(full_namespace, "job-train", WORKLOAD) == "released",
            controller.lines,
        )

    spec = site.admin.get(WORKLOAD.path(full_namespace, "job-train"))["spec"]
    assert {**item["spec"], "active": False} == spec


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


def test_a_kind_of_somebody_elses_is_scaled(site: ControllerSite, full_namespace: str) -> None:
    """Whatever has a scale subresource, once rights are granted by their label."""
    site.fence(full_namespace)
    owner = made(site, full_namespace, FARM, replicas=3)
    owned_pod(site, full_namespace, owner, "mine-0")
    with site.controller() as controller:
        wait_until(lambda: site.phase(full_namespace, "mine", FARM) == "released", controller.lines)
        note = site.note(full_namespace, "mine", FARM)

    assert note is not None
    assert (3, 0) == (note.replicas, site.replicas(full_namespace, "mine", FARM))


def test_a_rollout_is_scaled_and_not_what_is_below_it(
    site: ControllerSite, full_namespace: str
) -> None:
    """Its ReplicaSets are its own controller's."""
    site.fence(full_namespace)
    owner = made(site, full_namespace, ROLLOUT, replicas=2)
    below = {**worker("mine-1", 2), "kind": "ReplicaSet"}
    site.admin.post(REPLICA_SET.path(full_namespace), controlled(below, owner))
    with site.controller() as controller:
        wait_until(
            lambda: site.phase(full_namespace, "mine", ROLLOUT) == "released", controller.lines
        )
        note = site.note(full_namespace, "mine", ROLLOUT)

    assert note is not None
    assert (2, 0) == (note.replicas, site.replicas(full_namespace, "mine", ROLLOUT))
    assert 2 == site.replicas(full_namespace, "mine-1", REPLICA_SET)


def test_a_kind_that_cannot_be_listed_keeps_its_own_alone(
    site: ControllerSite, full_namespace: str
) -> None:
    """
    Who was to convert it does not answer: its owners stay, which is said, and all others are
    released as ever.
    """
    site.fence(full_namespace)
    owner = made(site, full_namespace, COOP, replicas=1)
    owned_pod(site, full_namespace, owner, "mine-0")
    site.deploy(full_namespace, "other")
    try:
        with site.controller(GPUFENCE_ACTIVITY_AUTH="none") as controller:
            # Until the kind is found it is taken for one that cannot be scaled.
            wait_until(
                lambda: UNREADABLE in controller.why_never(full_namespace, "mine"),
                controller.lines,
            )
            wait_until(lambda: site.phase(full_namespace, "other") == "released", controller.lines)
            busy = controller.activity(f"{full_namespace}/coops/mine")[0]
            fresh = controller.metrics()["gpufence_controller_fresh"]
    finally:
        site.admin.delete(COOP.path(full_namespace, "mine"))

    assert (1, 503) == (fresh, busy)


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


def test_a_stateful_set_is_scaled(site: ControllerSite, full_namespace: str) -> None:
    """As a Deployment is."""
    site.fence(full_namespace)
    stateful = {**worker("mine", 2), "kind": "StatefulSet"}
    stateful["spec"] |= {"serviceName": "mine", "podManagementPolicy": "Parallel"}
    site.admin.post(STATEFUL.path(full_namespace), stateful)
    with site.controller() as controller:
        wait_until(
            lambda: site.phase(full_namespace, "mine", STATEFUL) == "released", controller.lines
        )

    assert 0 == site.replicas(full_namespace, "mine", STATEFUL)


def test_a_kind_without_rights_is_left_alone_and_says_what_helps(
    site: ControllerSite, full_namespace: str
) -> None:
    """Nobody granted anything about herds; all others are released as ever."""
    site.fence(full_namespace)
    owner = made(site, full_namespace, HERD, size=3)
    owned_pod(site, full_namespace, owner, "mine-0")
    site.deploy(full_namespace, "other")
    with site.controller() as controller:
        said = controller.why_never(full_namespace, "mine")
        wait_until(lambda: site.phase(full_namespace, "other") == "released", controller.lines)

    assert "herds.example.com cannot be read" in said
    assert names.AGGREGATE in said


def test_what_nobody_can_bring_back_is_never_released(
    site: ControllerSite, full_namespace: str
) -> None:
    """A bare pod, a Job and a DaemonSet stay, and the reason is shown."""
    site.fence(full_namespace)
    template = worker("pod")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "pod"}}
    site.admin.post(core("namespaces", full_namespace, "pods"), pod)
    made_job(site, full_namespace, "job")
    template = worker("set")["spec"]["template"]
    item = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "set"},
        "spec": {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template},
    }
    site.admin.post(group("apps/v1", "namespaces", full_namespace, "daemonsets"), item)
    site.wait_for_pods(full_namespace, 4)
    before = {item["metadata"]["uid"] for item in site.pods(full_namespace)}
    with site.controller() as controller:
        said = [controller.why_never(full_namespace, name) for name in ("pod", "job", "set")]
        site.outlast(full_namespace)

    assert all(said)
    assert before <= {item["metadata"]["uid"] for item in site.pods(full_namespace)}


def test_a_disruption_budget_is_respected(site: ControllerSite, full_namespace: str) -> None:
    """An owner whose budget does not let all of its pods go stays."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 2)
    site.wait_for_pods(full_namespace, 2)
    path = group("policy/v1", "namespaces", full_namespace, "poddisruptionbudgets")
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "one"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "worker"}}},
    }
    site.admin.post(path, body)
    wait_until(lambda: site.admin.get(f"{path}/one")["status"].get("disruptionsAllowed") == 1)
    with site.controller() as controller:
        wait_until(
            lambda: (
                "PodDisruptionBudget" in controller.owner(full_namespace, "worker").get("why", "")
            )
        )
        site.outlast(full_namespace)
        wanted = site.replicas(full_namespace, "worker")
        site.admin.delete(f"{path}/one")
        wait_until(lambda: site.phase(full_namespace, "worker") == "released", controller.lines)

    assert 2 == wanted


def test_an_owner_that_is_gone_is_forgotten(site: ControllerSite, full_namespace: str) -> None:
    """Nothing is shown of it any more."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker")
    with site.controller() as controller:
        wait_until(lambda: controller.owner(full_namespace, "worker"))
        site.admin.delete(DEPLOYMENTS.path(full_namespace, "worker"))
        wait_until(lambda: not controller.owner(full_namespace, "worker"))
        with pytest.raises(NotFoundError):
            site.owner(full_namespace, "worker")
