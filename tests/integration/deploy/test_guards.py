"""The policies of two components on a real API server: what they stop, and what not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gpufence import names
from kube import (
    Client,
    ClientSettings,
    ForbiddenError,
    PatchType,
    connect,
    core,
    group,
)
from simulator.controlplane import ControlPlane, User
from tests.integration.deploy.rendering import WORKLOADS, listed, rendered
from tests.support.observing import wait_until
from tools.manifests import DEPLOY

OWN, OTHER = "guard-a", "guard-b"
TENANT = User("tenant", "tenants")
RBAC = "rbac.authorization.k8s.io/v1"
DRY = {"dryRun": "All"}
ALIKE = {"gpufence.io.example.com/mode": "x", "team": "a"}


def client(path: Path) -> Client:
    return connect(ClientSettings(kubeconfig=str(path)))


def allowed(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except ForbiddenError:
        return False
    return True


def pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "none"}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": containers, "nodeName": node, **spec},
    }


def event(host: str) -> dict[str, Any]:
    name = f"event.{uuid4().hex}"
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "x", "uid": "x"}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": about,
        "reason": names.EVICTED,
        "source": {"component": "gpufence-agent", "host": host},
    }


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[Client]:
    """Become an administrator, once both components' objects, but no workloads, are there."""
    objects = {
        key: item
        for overlay in ("guard-namespaces", "kubernetes-1.30")  # the later one's roles count
        for key, item in rendered(plane, DEPLOY / "overlays" / overlay).items()
        if item["kind"] not in WORKLOADS
    }
    items = listed(objects.values())
    plane.kubectl("apply", "-f", "-", stdin=items)
    with client(plane.kubeconfig()) as found:
        yield found
    plane.kubectl("delete", "-f", "-", "--ignore-not-found", "--timeout=50s", stdin=items)


@pytest.fixture(scope="module")
def agent(plane: ControlPlane, admin: Client) -> Iterator[Client]:
    """Become the agent of one of two nodes, with the plain rights of older clusters."""
    system = names.SYSTEM_NAMESPACE
    pods = (
        (system, pod("agent", OWN, serviceAccountName="gpufence-agent")),
        ("default", pod("mine", OWN)),
        ("default", pod("theirs", OTHER)),
    )
    where = ("-n", "default", "--for=create", "--timeout=30s")
    plane.kubectl("wait", "serviceaccount/default", *where)
    for node in (OWN, OTHER):
        admin.post(core("nodes"), {"metadata": {"name": node}})
    for namespace, item in pods:
        admin.post(core("namespaces", namespace, "pods"), item)
    token = plane.service_account_token(system, "gpufence-agent", pod="agent")
    with client(plane.token_kubeconfig("old-agent", token)) as found:
        wait_until(lambda: allowed(lambda: found.get(core("pods"), {"limit": 1})))
        wait_until(lambda: not allowed(lambda: patch(found, OTHER, cards="x")))
        wait_until(lambda: not allowed(lambda: write(found, OTHER)))
        wait_until(lambda: not allowed(lambda: remove(found, "theirs")))
        wait_until(lambda: not allowed(lambda: say(found, "theirs")))
        yield found
    for namespace, item in pods:
        # No kubelet ever says that they ended.
        name = item["metadata"]["name"]
        plane.kubectl("delete", "pod", name, "-n", namespace, "--force", "--ignore-not-found")
    for node in (OWN, OTHER):
        admin.delete(core("nodes", node))


def patch(found: Client, node: str, cards: str = "", **change: Any) -> None:
    metadata = {"annotations": {names.CARDS: cards}} if cards else {}
    body = {"metadata": metadata | change.pop("metadata", {}), **change}
    found.patch(core("nodes", node), body, PatchType.MERGE, DRY)


def write(found: Client, host: str) -> None:
    found.post(core("namespaces", "default", "events"), event(host), DRY)


def remove(found: Client, name: str) -> None:
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    found.delete(core("namespaces", "default", "pods", name), body)


def say(found: Client, name: str, **change: Any) -> None:
    kinds = (names.GPU_IDLE, names.GPU_MEMORY)
    body = change or {
        "status": {"conditions": [{"type": kind, "status": "True"} for kind in kinds]}
    }
    path = f"{core('namespaces', 'default', 'pods', name)}/status"
    found.patch(path, body, PatchType.STRATEGIC, DRY)


@pytest.mark.parametrize(("name", "expected"), [("mine", True), ("theirs", False)])
def test_an_agent_says_who_is_idle_on_its_own_node(
    agent: Client,
    name: str,
    expected: bool,  # noqa: FBT001 (a row of the table)
) -> None:
    """Both conditions can be written on pods where the agent runs, and nowhere else."""
    assert expected == allowed(lambda: say(agent, name))


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"annotations": {"example.com/x": "y"}}},
        {"metadata": {"labels": {"app": "other"}}},
        {"status": {"phase": "Failed"}},
        {"status": {"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"conditions": [{"type": "PodScheduled", "$patch": "delete"}]}},
        {
            "status": {
                "containerStatuses": [
                    {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": 0}
                ]
            }
        },
        {"status": {"reason": "Evicted"}},
    ],
    ids=str,
)
def test_an_agent_says_nothing_else_of_a_pod(
    agent: Client, admin: Client, change: dict[str, Any]
) -> None:
    """Whether a pod is ready, runs or where it can be reached is its kubelet's to say."""
    ready = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
    path = f"{core('namespaces', 'default', 'pods', 'mine')}/status"
    admin.patch(path, ready, PatchType.STRATEGIC)
    with pytest.raises(ForbiddenError, match=f"{names.GPU_MEMORY} of a pod and nothing"):
        say(agent, "mine", **change)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"annotations": {"example.com/x": "y"}}},
        {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}},
        {"metadata": {"finalizers": ["example.com/x"]}},
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}},
    ],
    ids=lambda change: "-".join([*change, *next(iter(change.values()))]),
)
def test_an_agent_changes_nothing_else_of_its_node(agent: Client, change: dict[str, Any]) -> None:
    """Labels, taints and whatever else decides scheduling are not the agent's."""
    said = f"annotation {names.CARDS} of its Node and nothing|change no label of its Node"
    with pytest.raises(ForbiddenError, match=said):
        patch(agent, OWN, **change)


def test_an_agent_changes_no_other_node(agent: Client) -> None:
    """The refusal names both nodes."""
    with pytest.raises(ForbiddenError, match=f'of node "{OWN}" may not change node {OTHER}'):
        patch(agent, OTHER, cards="x")


def test_an_agent_writes_no_event_without_its_node(agent: Client) -> None:
    """An Event says which node it comes from; test_stolen_token tries those of a node."""
    assert not allowed(lambda: write(agent, ""))


def test_administrators_are_not_meant(agent: Client, admin: Client) -> None:
    """The policies are about the agents' account alone."""
    assert not allowed(lambda: remove(agent, "theirs"))
    assert allowed(lambda: patch(admin, OTHER, metadata={"labels": {"a": "b"}}))
    assert allowed(lambda: remove(admin, "theirs"))


@pytest.fixture(scope="module")
def tenant(plane: ControlPlane, admin: Client) -> Iterator[Client]:
    """Become somebody who may edit namespaces, once the guard stands."""
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "patch", "get"]}]
    admin.post(group(RBAC, "clusterroles"), {"metadata": {"name": "editors"}, "rules": rules})
    bind(admin, "editors")
    admin.post(core("namespaces"), {"metadata": {"name": "guarded", "labels": {names.MODE: "cap"}}})
    with client(plane.kubeconfig(TENANT)) as found:
        wait_until(lambda: allowed(lambda: change(found, labels={"team": "b"})))
        wait_until(lambda: not allowed(lambda: change(found, labels={names.MODE: "observe"})))
        yield found
    for kind, name in (("clusterroles", "editors"), ("clusterrolebindings", "editors")):
        admin.delete(group(RBAC, kind, name))
    admin.delete(core("namespaces", "guarded"))


def bind(admin: Client, role: str) -> None:
    subject = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": TENANT.group}
    reference = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": role}
    body = {"metadata": {"name": role}, "subjects": [subject], "roleRef": reference}
    admin.post(group(RBAC, "clusterrolebindings"), body)


def change(found: Client, **metadata: Any) -> None:
    body = {"metadata": metadata}
    found.patch(core("namespaces", "guarded"), body, PatchType.MERGE, DRY)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {names.MODE: "observe"}},
        {"labels": {names.MODE: None}},
        {"annotations": {names.MAX_MEMORY: "80Gi"}},
        {"annotations": {names.MEMORY: "1Gi"}},
    ],
    ids=str,
)
def test_a_tenant_cannot_move_the_fence(tenant: Client, metadata: dict[str, Any]) -> None:
    """Neither the mode nor any other word of ours is a tenant's to say."""
    with pytest.raises(ForbiddenError, match="is set by those who hold ClusterRole gpufence-modes"):
        change(tenant, **metadata)


def test_a_tenant_cannot_begin_with_a_mode(tenant: Client) -> None:
    """A namespace cannot be made with a mode either."""
    body = {"metadata": {"name": "another", "labels": {names.MODE: "observe"}}}

    assert not allowed(lambda: tenant.post(core("namespaces"), body, DRY))


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_a_tenant_says_everything_else(tenant: Client, kind: str) -> None:
    """Keys that are not ours are as free as before."""
    assert allowed(lambda: change(tenant, **{kind: ALIKE}))
    assert allowed(lambda: tenant.post(core("namespaces"), {"metadata": {"name": "n"}}, DRY))


def test_administrators_hold_the_right_already(tenant: Client, admin: Client) -> None:
    """Who may do everything may set a mode."""
    assert not allowed(lambda: change(tenant, labels={names.MODE: "evict"}))
    assert allowed(lambda: change(admin, labels={names.MODE: "evict"}))


def test_the_role_lets_a_tenant_through(tenant: Client, admin: Client) -> None:
    """Binding the role is enough, and unbinding takes it away."""
    bind(admin, "gpufence-modes")
    wait_until(lambda: allowed(lambda: change(tenant, labels={names.MODE: "observe"})))
    admin.delete(group(RBAC, "clusterrolebindings", "gpufence-modes"))
    wait_until(lambda: not allowed(lambda: change(tenant, labels={names.MODE: "observe"})))

    assert allowed(lambda: change(tenant, labels={"team": "c"}))
