"""What somebody could do who stole the controller's token: nothing but what it is for."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from gpufence import names
from kube import Client, ClientSettings, ForbiddenError, JsonObject, PatchType, connect, core, group
from kube.workloads import set_replicas, write_note
from simulator.controlplane import ControlPlane
from tests.support.controller.site import DEPLOYMENTS, ControllerSite
from tests.support.objects import NOTEBOOKS, WORKLOADS, define, undefine
from tests.support.observing import wait_until
from tests.support.site import Site

APPS = "apps/v1"
KUEUE = "kueue.x-k8s.io/v1beta1"
KUBEFLOW = "kubeflow.org/v1"


@pytest.fixture(scope="module", autouse=True)
def defined(full_control_plane: ControlPlane) -> Iterator[None]:
    with Site(full_control_plane.kubeconfig(), full_control_plane.kubectl) as site:
        define(site.admin, NOTEBOOKS, WORKLOADS)
        yield
        undefine(site.admin, NOTEBOOKS, WORKLOADS)


@pytest.fixture
def thief(site: ControllerSite) -> Iterator[Client]:
    settings = ClientSettings(kubeconfig=str(site.kubeconfig_of(names.CONTROLLER)))
    with connect(settings) as client:
        yield client


@pytest.fixture
def victim(site: ControllerSite, full_namespace: str) -> str:
    """A Deployment without pods in a namespace that lets idle ones go."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 0)
    site.wait_until_quiet(full_namespace, "worker")
    return DEPLOYMENTS.path(full_namespace, "worker")


def refused(client: Client, path: str, body: JsonObject) -> bool:
    """Return whether a change is refused, by the policy or for want of a right."""
    try:
        client.patch(path, body, PatchType.MERGE)
    except ForbiddenError:
        return True
    return False


def test_what_it_is_for_is_allowed(
    site: ControllerSite, thief: Client, victim: str, full_namespace: str
) -> None:
    """It scales, and writes its note."""
    assert victim
    write_note(thief, site.owner(full_namespace, "worker"), '{"v":1}')
    site.wait_until_quiet(full_namespace, "worker")
    scaled = set_replicas(thief, site.owner(full_namespace, "worker"), 2)
    site.wait_for_pods(full_namespace, 2)
    site.wait_until_quiet(full_namespace, "worker")
    none = set_replicas(thief, site.owner(full_namespace, "worker"), 0)

    assert (2, 0) == (scaled.replicas, none.replicas)
    assert '{"v":1}' == site.owner(full_namespace, "worker").annotations[names.RELEASED]


CHANGES: dict[str, JsonObject] = {
    "replicas in the spec": {"spec": {"replicas": 3}},
    "the image": {
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "mine"}]}}}
    },
    "a label": {"metadata": {"labels": {"a": "b"}}},
    "an annotation of others": {"metadata": {"annotations": {"a": "b"}}},
    "a word of ours": {"metadata": {"annotations": {names.KEEP_UNTIL: "x"}}},
    "a stop of what is no Notebook": {"metadata": {"annotations": {names.STOPPED: "x"}}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/mine"]}},
    "an owner": {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]
        }
    },
    "a pause": {"spec": {"paused": True}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_nothing_else_of_an_owner_can_be_changed(
    thief: Client, victim: str, change: JsonObject
) -> None:
    """Whoever could change a template would run what he likes."""
    before = thief.get(victim)

    assert refused(thief, victim, change)
    assert before == thief.get(victim)


@pytest.mark.parametrize("idle", [None, "report", "warn"])
def test_nobody_is_released_where_the_namespace_does_not_say_so(
    site: ControllerSite, thief: Client, full_namespace: str, idle: str | None
) -> None:
    """The policy reads the label of the namespace itself."""
    site.fence(full_namespace)
    site.deploy(full_namespace, "worker", 1)
    site.wait_for_pods(full_namespace, 1)
    site.wait_until_quiet(full_namespace, "worker")
    site.fence(full_namespace, idle)

    def scaling() -> bool:
        try:
            set_replicas(thief, site.owner(full_namespace, "worker"), 0)
        except ForbiddenError:
            return True
        return False

    # What the API server knows of the namespace may be a moment old.
    wait_until(scaling)

    assert (idle is None) == refused(
        thief,
        DEPLOYMENTS.path(full_namespace, "worker"),
        {"metadata": {"annotations": {names.RELEASED: "x"}}},
    )


@pytest.mark.parametrize("namespace", ["kube-system", "system"])
def test_the_systems_namespaces_are_out_of_reach(
    site: ControllerSite, thief: Client, namespace: str
) -> None:
    """Whatever their labels say."""
    where = site.system if namespace == "system" else namespace
    site.fence(where)
    try:
        site.deploy(where, "worker", 0)
        site.wait_until_quiet(where, "worker")
        with pytest.raises(ForbiddenError):
            set_replicas(thief, site.owner(where, "worker"), 1)
        with pytest.raises(ForbiddenError):
            write_note(thief, site.owner(where, "worker"), "x")
    finally:
        site.admin.delete(
            DEPLOYMENTS.path(where, "worker"), None, {"propagationPolicy": "Background"}
        )
        labels = {"metadata": {"labels": {names.IDLE: None, names.MODE: None}}}
        site.admin.patch(core("namespaces", where), labels, PatchType.MERGE)


def test_of_a_workload_only_whether_it_is_active_changes(
    site: ControllerSite, thief: Client, full_namespace: str
) -> None:
    """Its queue and its pods are out of reach."""
    site.fence(full_namespace)
    path = group(KUEUE, "namespaces", full_namespace, "workloads")
    item = foreign(KUEUE, "Workload", queueName="q", active=True)
    site.admin.post(path, item)

    assert refused(thief, f"{path}/mine", {"spec": {"queueName": "other"}})
    assert refused(thief, f"{path}/mine", {"spec": {"active": False, "queueName": None}})
    assert refused(thief, f"{path}/mine", {"metadata": {"annotations": {names.STOPPED: "x"}}})
    assert not refused(thief, f"{path}/mine", {"spec": {"active": False}})
    assert not refused(thief, f"{path}/mine", {"spec": {"active": True}})


def test_of_a_notebook_only_its_stop_changes(
    site: ControllerSite, thief: Client, full_namespace: str
) -> None:
    """What it runs is out of reach."""
    site.fence(full_namespace)
    path = group(KUBEFLOW, "namespaces", full_namespace, "notebooks")
    site.admin.post(path, foreign(KUBEFLOW, "Notebook", template={"spec": {}}))

    assert refused(thief, f"{path}/mine", {"spec": {"template": {"spec": {"a": "b"}}}})
    assert not refused(thief, f"{path}/mine", {"metadata": {"annotations": {names.STOPPED: "x"}}})
    site.fence(full_namespace, "warn")
    started = {"metadata": {"annotations": {names.STOPPED: None}}}

    def stopped() -> JsonObject:
        # What stands there already is no stop: one that was let in must not be said again.
        return {"metadata": {"annotations": {names.STOPPED: uuid4().hex}}}

    # What the API server knows of the namespace may be a moment old.
    wait_until(lambda: refused(thief, f"{path}/mine", stopped()))
    assert not refused(thief, f"{path}/mine", started)


def foreign(api_version: str, kind: str, **spec: Any) -> JsonObject:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "mine"},
        "spec": spec,
    }


def test_nothing_can_be_read_that_is_secret_or_made(
    site: ControllerSite, thief: Client, full_namespace: str
) -> None:
    """
    Neither Secrets nor ConfigMaps of others, nor are pods, roles or Leases made, nor anything
    deleted.
    """
    pods = core("namespaces", full_namespace, "pods")
    leases = group("coordination.k8s.io/v1", "namespaces", site.system, "leases")
    tries: dict[str, Callable[[], object]] = {
        "secrets": lambda: thief.get(core("namespaces", full_namespace, "secrets")),
        "maps": lambda: thief.get(core("namespaces", full_namespace, "configmaps")),
        "system's maps": lambda: thief.get(core("namespaces", site.system, "configmaps")),
        "pods": lambda: thief.post(pods, {"metadata": {"name": "a"}}),
        "logs": lambda: thief.get(f"{pods}/a/log"),
        "exec": lambda: thief.post(f"{pods}/a/exec", {}),
        "eviction": lambda: thief.post(f"{pods}/a/eviction", {"metadata": {"name": "a"}}),
        "leases": lambda: thief.post(leases, {"metadata": {"name": "a"}}),
        "other lease": lambda: thief.get(f"{leases}/kube-scheduler"),
        "deletion": lambda: thief.delete(DEPLOYMENTS.path(full_namespace)),
        "creation": lambda: thief.post(DEPLOYMENTS.path(full_namespace), {}),
        "namespaces": lambda: thief.patch(
            core("namespaces", full_namespace), {"metadata": {}}, PatchType.MERGE
        ),
        "nodes": lambda: thief.patch(core("nodes", site.one), {"metadata": {}}, PatchType.MERGE),
        "status": lambda: thief.patch(
            f"{DEPLOYMENTS.path(full_namespace, 'worker')}/status", {}, PatchType.MERGE
        ),
    }
    allowed = []
    for what, act in tries.items():
        try:
            act()
        except ForbiddenError:
            continue
        allowed.append(what)

    assert [] == allowed
