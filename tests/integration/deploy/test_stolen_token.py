"""
What the holder of one agent's token can do, tried one by one with the rights that we ship.

`make versions` prints it for each Kubernetes: `record_property` keeps what was found.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from gpufence import names
from kube import Client, ClientSettings, PatchType, connect, core
from simulator.controlplane import ControlPlane
from tests.integration.deploy.doors import (
    AGENT,
    DOORS,
    MINE,
    OTHER,
    OWN,
    TEAM,
    THEIRS,
    Door,
    condition,
    eviction,
    in_team,
    need,
    node,
    ours,
    token,
    told,
)
from tests.integration.deploy.rendering import WORKLOADS, listed, rendered
from tests.support.objects import pod
from tests.support.observing import wait_until
from tests.support.site import AS_ITS_NODE, IMPERSONATION, running_minor
from tools.manifests import BASE, DEPLOY

SYSTEM: Final = names.SYSTEM_NAMESPACE
# With the API server's bounds on a node, and with rights of the account's own.
BOTH, NEITHER, PLAIN, NODE = (True, True), (False, False), (False, True), (True, False)


def listed_pods(host: str) -> Door:
    return Door("get", core("pods"), query={"fieldSelector": f"spec.nodeName={host}"})


def cards_of(name: str) -> Door:
    return node(name, metadata={"annotations": {names.CARDS: "x"}})


FAILED = Door(
    "patch", in_team(MINE, "status"), {"status": {"phase": "Failed"}}, PatchType.STRATEGIC
)
SWITCH = ours("configmaps", names.POLICY_CONFIGMAP)
TRIES: Final[Mapping[str, tuple[Door, tuple[bool, bool]]]] = {
    "read the pods of its own node": (listed_pods(OWN), BOTH),
    "read the pods of other nodes": (listed_pods(OTHER), PLAIN),
    "evict pods of its own node, as budgets allow": (eviction(MINE), BOTH),
    "evict pods of other nodes, as budgets allow": (eviction(THEIRS), PLAIN),
    "delete pods of its own node": (Door("delete", in_team(MINE)), BOTH),
    "delete pods of other nodes": (Door("delete", in_team(THEIRS)), NEITHER),
    f"write condition `{names.GPU_IDLE}` on pods of its own node": (condition(MINE), BOTH),
    "write anything else into their status": (FAILED, NODE),
    "write the status of pods of other nodes": (condition(THEIRS), NEITHER),
    "write annotations of its own Node": (cards_of(OWN), BOTH),
    "taint its own Node": (DOORS["taint its own Node"], NEITHER),
    "label its own Node as one with GPUs": (DOORS["label its own Node"], NEITHER),
    "cordon its own Node": (DOORS["cordon its own Node"], NEITHER),
    "change another Node": (cards_of(OTHER), NEITHER),
    "write Events in the name of its own node": (told(OWN), BOTH),
    "write Events in the name of other nodes": (told(OTHER), NODE),
    "read namespaces": (Door("get", core("namespaces")), BOTH),
    "read ConfigMaps of gpufence-system": (Door("get", SWITCH), BOTH),
    "write what models of its own node have needed": (need(OWN), BOTH),
    "write what models of other nodes have needed": (need(OTHER), NEITHER),
    "turn the kill switch": (DOORS["turn the kill switch"], NEITHER),
    "read ConfigMaps elsewhere": (
        Door("get", core("namespaces", "kube-system", "configmaps")),
        NEITHER,
    ),
    "read Secrets": (DOORS["read Secrets"], NEITHER),
    "make pods": (DOORS["make pods"], NEITHER),
    "change what a pod runs": (DOORS["change what a pod runs"], NEITHER),
    "run a command in a pod": (DOORS["run a command in a pod"], NEITHER),
    "read a pod's log": (DOORS["read a pod's log"], NEITHER),
    "get tokens of ServiceAccounts": (token(AGENT), NEITHER),
    "change roles or policies": (DOORS["change or delete a policy"], NEITHER),
}


def allowed(thief: Client, what: str) -> bool:
    """Try as oneself and as the node that the token is bound to."""
    door, _ = TRIES[what]
    return any(door.open(each) for each in (thief, thief.impersonating(f"system:node:{OWN}")))


@pytest.fixture(scope="module")
def rights(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[int]:
    """Install everything but the workloads, and make a pod on each of two nodes."""
    folder = BASE if request.param else DEPLOY / "overlays" / "kubernetes-1.30"
    objects = [one for one in rendered(plane, folder).values() if one["kind"] not in WORKLOADS]
    items = listed([*objects, *map(made_node, (OWN, OTHER))])
    plane.kubectl("apply", "-f", "-", stdin=items)
    plane.kubectl("create", "namespace", TEAM)
    where = ("-n", TEAM, "--for=create", "--timeout=30s")
    plane.kubectl("wait", "serviceaccount/default", *where)
    made = [
        (TEAM, pod(MINE, nodeName=OWN)),
        (TEAM, pod(THEIRS, nodeName=OTHER)),
        (SYSTEM, pod("stolen", nodeName=OWN, serviceAccountName=AGENT)),
    ]
    for namespace, body in made:
        plane.kubectl("create", "-n", namespace, "-f", "-", stdin=listed([body]))
    yield request.param
    for namespace, body in made:
        name = body["metadata"]["name"]
        plane.kubectl("delete", "pod", name, "-n", namespace, "--force", "--ignore-not-found")
    plane.kubectl("delete", "namespace", TEAM, "--wait=false")
    plane.kubectl("delete", "-f", "-", "--ignore-not-found", "--timeout=50s", stdin=items)
    plane.kubectl("wait", f"namespace/{TEAM}", "--for=delete", "--timeout=50s")


def made_node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@pytest.fixture
def thief(plane: ControlPlane, rights: int) -> Iterator[Client]:
    """Come by the token, once the API server has taken up the rights and every policy."""
    del rights
    token = plane.service_account_token(SYSTEM, AGENT, pod="stolen")
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
    wait_until(lambda: allowed(thief, what) == expected, what)


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
    found = {what: allowed(thief, what) for what in TRIES}
    if rights == (running_minor() >= IMPERSONATION):
        for what, ended in found.items():
            record_property(f"token: {what}", "yes" if ended else "no")

    assert {what: expected[not rights] for what, (_, expected) in TRIES.items()} == found
