"""
What the holder of one agent's token can do, tried one by one with the rights that we ship.

`make versions` prints it for each Kubernetes: `record_property` keeps what was found.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from gpufence import names
from gpufence.need import need_configmap
from kube import (
    Client,
    ClientSettings,
    ForbiddenError,
    JsonObject,
    KubeError,
    PatchType,
    connect,
    core,
    group,
)
from simulator.controlplane import ControlPlane
from tests.integration.deploy.rendering import WORKLOADS, listed, rendered
from tests.support.objects import pod
from tests.support.observing import wait_until
from tests.support.site import AS_ITS_NODE, IMPERSONATION, running_minor
from tools.manifests import BASE, DEPLOY

OWN, OTHER = "stolen-a", "stolen-b"
MINE, THEIRS = "mine", "theirs"
SYSTEM: Final = names.SYSTEM_NAMESPACE
DRY = {"dryRun": "All"}
CONDITION = {"status": {"conditions": [{"type": names.GPU_IDLE, "status": "True"}]}}
FAILED = {"status": {"phase": "Failed"}}
CARDS = {"metadata": {"annotations": {names.CARDS: "x"}}}
TAINT = {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
CORDON = {"spec": {"unschedulable": True}}
LABEL = {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}}
IMAGE = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
# With the API server's bounds on a node, and with rights of the account's own.
BOTH, NEITHER, PLAIN, NODE = (True, True), (False, False), (False, True), (True, False)

Try = Callable[[Client], object]


def pods(name: str, *more: str) -> str:
    return core("namespaces", "default", "pods", name, *more)


def maps(*more: str) -> str:
    return core("namespaces", SYSTEM, "configmaps", *more)


def list_pods(node: str) -> Try:
    return lambda thief: thief.list(core("pods"), {"fieldSelector": f"spec.nodeName={node}"})


def evict(name: str) -> Try:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return lambda thief: thief.post(pods(name, "eviction"), body, DRY)


def delete(path: str) -> Try:
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    return lambda thief: thief.delete(path, body)


def patch(path: str, body: JsonObject) -> Try:
    return lambda thief: thief.patch(path, body, PatchType.STRATEGIC, DRY)


def post(path: str, body: JsonObject) -> Try:
    return lambda thief: thief.post(path, body, DRY)


def get(path: str) -> Try:
    return lambda thief: thief.get(path)


def event(host: str) -> JsonObject:
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "x", "uid": "x"}
    return {
        "metadata": {"generateName": "stolen-", "namespace": "default"},
        "involvedObject": about,
        "reason": names.EVICTED,
        "source": {"component": "gpufence-agent", "host": host},
    }


def need(node: str) -> Try:
    return post(maps(), {"metadata": {"name": need_configmap(node)}})


TRIES: Final[Mapping[str, tuple[Try, tuple[bool, bool]]]] = {
    "read the pods of its own node": (list_pods(OWN), BOTH),
    "read the pods of other nodes": (list_pods(OTHER), PLAIN),
    "evict pods of its own node, as budgets allow": (evict(MINE), BOTH),
    "evict pods of other nodes, as budgets allow": (evict(THEIRS), PLAIN),
    "delete pods of its own node": (delete(pods(MINE)), BOTH),
    "delete pods of other nodes": (delete(pods(THEIRS)), NEITHER),
    f"write condition `{names.GPU_IDLE}` on pods of its own node": (
        patch(pods(MINE, "status"), CONDITION),
        BOTH,
    ),
    "write anything else into their status": (patch(pods(MINE, "status"), FAILED), NODE),
    "write the status of pods of other nodes": (patch(pods(THEIRS, "status"), CONDITION), NEITHER),
    "write annotations of its own Node": (patch(core("nodes", OWN), CARDS), BOTH),
    "taint its own Node": (patch(core("nodes", OWN), TAINT), NEITHER),
    "label its own Node as one with GPUs": (patch(core("nodes", OWN), LABEL), NEITHER),
    "cordon its own Node": (patch(core("nodes", OWN), CORDON), NEITHER),
    "change another Node": (patch(core("nodes", OTHER), CARDS), NEITHER),
    "write Events in the name of its own node": (
        post(core("namespaces", "default", "events"), event(OWN)),
        BOTH,
    ),
    "write Events in the name of other nodes": (
        post(core("namespaces", "default", "events"), event(OTHER)),
        NODE,
    ),
    "read namespaces": (get(core("namespaces")), BOTH),
    "read ConfigMaps of gpufence-system": (get(maps(names.POLICY_CONFIGMAP)), BOTH),
    "write what models of its own node have needed": (need(OWN), BOTH),
    "write what models of other nodes have needed": (need(OTHER), NEITHER),
    "turn the kill switch": (patch(maps(names.POLICY_CONFIGMAP), {"data": {"x": "y"}}), NEITHER),
    "read ConfigMaps elsewhere": (get(core("namespaces", "kube-system", "configmaps")), NEITHER),
    "read Secrets": (get(core("namespaces", "default", "secrets")), NEITHER),
    "make pods": (post(core("namespaces", "default", "pods"), pod("b")), NEITHER),
    "change what a pod runs": (patch(pods(MINE), IMAGE), NEITHER),
    "run a command in a pod": (post(pods(MINE, "exec"), {}), NEITHER),
    "read a pod's log": (get(pods(MINE, "log")), NEITHER),
    "get tokens of ServiceAccounts": (
        post(core("namespaces", SYSTEM, "serviceaccounts", "gpufence-agent", "token"), {}),
        NEITHER,
    ),
    "change roles or policies": (
        delete(
            group(
                "admissionregistration.k8s.io/v1",
                "validatingadmissionpolicies",
                "gpufence-agent-need",
            )
        ),
        NEITHER,
    ),
}


def allowed(thief: Client, what: Try) -> bool:
    """Try as oneself and as the node that the token is bound to."""
    for client in (thief, thief.impersonating(f"system:node:{OWN}")):
        try:
            what(client)
        except ForbiddenError:
            continue
        except KubeError:
            pass  # whoever may do it hears of what is wrong with it: nothing runs here
        return True
    return False


@pytest.fixture(scope="module")
def rights(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[int]:
    """Install everything but the workloads, and make a pod on each of two nodes."""
    folder = BASE if request.param else DEPLOY / "overlays" / "kubernetes-1.30"
    objects = [one for one in rendered(plane, folder).values() if one["kind"] not in WORKLOADS]
    items = listed(objects)
    plane.kubectl("apply", "-f", "-", stdin=items)
    plane.kubectl("wait", "serviceaccount/default", "--for=create", "--timeout=30s")
    for node in (OWN, OTHER):
        plane.kubectl("create", "-f", "-", stdin=listed([made_node(node)]))
    made = [(MINE, OWN, "default"), (THEIRS, OTHER, "default"), ("stolen", OWN, SYSTEM)]
    for name, node, namespace in made:
        body = pod(name, nodeName=node)
        if namespace == SYSTEM:
            body["spec"]["serviceAccountName"] = "gpufence-agent"
        plane.kubectl("create", "-n", namespace, "-f", "-", stdin=listed([body]))
    yield request.param
    for name, _, namespace in made:
        plane.kubectl("delete", "pod", name, "-n", namespace, "--force", "--ignore-not-found")
    plane.kubectl("delete", "node", OWN, OTHER)
    plane.kubectl("delete", "-f", "-", "--ignore-not-found", "--timeout=50s", stdin=items)


def made_node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@pytest.fixture
def thief(plane: ControlPlane, rights: int) -> Iterator[Client]:
    """Come by the token, once the API server has taken up the rights and every policy."""
    del rights
    token = plane.service_account_token(SYSTEM, "gpufence-agent", pod="stolen")
    with connect(ClientSettings(kubeconfig=str(plane.token_kubeconfig("stolen", token)))) as found:
        for what in (
            "read the pods of its own node",
            "write what models of its own node have needed",
        ):
            wait_until_found(found, what, expected=True)
        for what, (_, expected) in TRIES.items():
            if expected == NEITHER:
                wait_until_found(found, what, expected=False)
        yield found


def wait_until_found(thief: Client, what: str, *, expected: bool) -> None:
    wait_until(lambda: allowed(thief, TRIES[what][0]) == expected, what)


@pytest.mark.parametrize(
    "rights",
    [
        pytest.param(1, marks=pytest.mark.since(*AS_ITS_NODE, skip=True), id="as its node"),
        pytest.param(0, id="by its own account"),
    ],
    indirect=True,
)
def test_a_stolen_token_can_do_this_and_no_more(
    thief: Client, rights: int, record_property: Callable[[str, object], None]
) -> None:
    """Each try has the end that docs/versions.md says it has."""
    found = {what: allowed(thief, ask) for what, (ask, _) in TRIES.items()}
    if rights == (running_minor() >= IMPERSONATION):
        for what, ended in found.items():
            record_property(f"token: {what}", "yes" if ended else "no")

    assert {what: expected[not rights] for what, (_, expected) in TRIES.items()} == found
