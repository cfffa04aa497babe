"""Cards that take no more claims, on Kubernetes' own scheduler."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest
import yaml

from gpufence import names
from kube import Client, ClientSettings, ForbiddenError, JsonObject, connect, core, group
from simulator.node import SimulatedNode
from simulator.nvml.build import environment
from tests.support import claims
from tests.support.agent.node_site import NodeSite
from tests.support.kubernetes import TAINTS
from tests.support.manifests import COMPONENTS
from tests.support.node_ground import pod, workload
from tests.support.observing import eventually, wait_until
from tests.support.policies import policy_path, wait_until_enforced
from tests.support.site import AGENT

pytestmark = pytest.mark.since(*TAINTS, skip=True)

RULES = group(names.RESOURCE_GROUP, "devicetaintrules")
RBAC = "rbac.authorization.k8s.io/v1"
ROLES = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}
QUICK = {
    "GPUFENCE_DEVICE_TAINTS": "true",
    "GPUFENCE_TAINT_SECONDS": "0.5",
    "GPUFENCE_UNTAINT_SECONDS": "1",
    "GPUFENCE_UNATTRIBUTED_HOLD_SECONDS": "0.5",
}
DRY = {"dryRun": "All"}


@pytest.fixture
def tainting(site: NodeSite) -> Iterator[NodeSite]:
    """The site with component device-taints as shipped, about its own namespace."""
    items: list[JsonObject] = []
    for name in ("rbac.yaml", "policies.yaml"):
        text = (COMPONENTS / "device-taints" / name).read_text(encoding="utf-8")
        items += yaml.safe_load_all(text.replace(names.SYSTEM_NAMESPACE, site.system))
    site.apply(*items)
    wait_until_enforced(site)
    try:
        yield site
    finally:
        for item in items:
            site.drop(path_of(item))


def path_of(item: JsonObject) -> str:
    plural = ROLES.get(item["kind"])
    return group(RBAC, plural, item["metadata"]["name"]) if plural else policy_path(item)


@contextmanager
def stranger(node: SimulatedNode, script: str) -> Iterator[None]:
    """Let a process of no pod hold memory."""
    command = [sys.executable, "-m", "simulator", "workload", script]
    with subprocess.Popen(command, env=environment(node.state.path)) as process:
        try:
            yield
        finally:
            process.kill()


def rules(site: NodeSite) -> list[JsonObject]:
    return site.admin.list(RULES).items


def make(site: NodeSite, namespace: str, name: str) -> None:
    ref = claims.by_template("gpu", "part")
    container = claims.claiming(workload("hold 100Mi"), gpu="")
    site.admin.post(
        core("namespaces", namespace, "pods"), pod(name, container, resourceClaims=[ref])
    )


def placed(site: NodeSite, namespace: str, name: str) -> bool:
    return bool(site.pod(namespace, name)["spec"].get("nodeName"))


@pytest.mark.since(*TAINTS)
def test_a_card_with_memory_of_nobody_takes_no_claim_until_it_is_in_order(
    tainting: NodeSite, node: SimulatedNode, full_namespace: str
) -> None:
    """
    The scheduler places no claim there while the rule stands, one that is there stays, and the next
    agent takes up what the one before has left.
    """
    path = group(names.RESOURCE_GROUP, "namespaces", full_namespace, "resourceclaimtemplates")
    tainting.admin.post(path, claims.template("part", claims.request("2Gi")))
    make(tainting, full_namespace, "before")
    wait_until(lambda: placed(tainting, full_namespace, "before"))
    with stranger(node, "hold 2Gi"):
        with tainting.agent(**QUICK):
            wait_until(lambda: rules(tainting))
        (left,) = rules(tainting)
        make(tainting, full_namespace, "during")
        refused = eventually(lambda: _is_refused(tainting, full_namespace, "during"))
    with tainting.agent(**QUICK):
        wait_until(lambda: not rules(tainting))
        wait_until(lambda: placed(tainting, full_namespace, "during"))
    stayed = tainting.pod(full_namespace, "before")

    assert refused
    assert "deletionTimestamp" not in stayed["metadata"]
    assert {"key": names.DEVICE_TAINT, "value": "unattributed", "effect": "NoSchedule"} == {
        key: left["spec"]["taint"][key] for key in ("key", "value", "effect")
    }
    assert [node.name] == [owner["name"] for owner in left["metadata"]["ownerReferences"]]


def _is_refused(site: NodeSite, namespace: str, name: str) -> bool:
    said = site.pod(namespace, name)["status"].get("conditions") or []
    return any("cannot allocate all claims" in item.get("message", "") for item in said)


def wished(node: str, **changes: Any) -> JsonObject:
    chosen = {"driver": names.DRA_DRIVER, "pool": node, "device": "gpu-0"}
    taint = {"key": names.DEVICE_TAINT, "value": "unattributed", "effect": "NoSchedule"}
    spec = {
        "deviceSelector": {**chosen, **changes.get("chosen", {})},
        "taint": {**taint, **changes.get("taint", {})},
    }
    name = changes.get("name", f"{names.TAINT_PREFIX}{node}-gpu-0")
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }


def speaking(site: NodeSite, node: str) -> Client:
    """Speak as the agent of a node."""
    kubeconfig = site.kubeconfig_of(AGENT, site.token_of_agent(node))
    return connect(ClientSettings(kubeconfig=str(kubeconfig)))


def _is_denied(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except ForbiddenError as error:
        return "may not write DeviceTaintRule" in error.failure.message
    return False


def test_with_the_token_of_an_agent_nobody_taints_anything_else(
    tainting: NodeSite, node: SimulatedNode
) -> None:
    """
    Neither another node's devices nor all of them, nobody is moved, and no rule of others goes.
    """
    others = wished("another-node")
    tainting.admin.post(RULES, others)
    try:
        with closing(speaking(tainting, node.name)) as account:
            account.post(RULES, wished(node.name), DRY)
            for wish in (
                wished("other"),
                wished(node.name, taint={"effect": "NoExecute"}),
                wished(node.name, taint={"key": "example.com/other"}),
                wished(node.name, chosen={"pool": None}),
                wished(node.name, chosen={"device": None}),
                wished(node.name, chosen={"driver": "nic.example.com"}),
                wished(node.name, name="theirs"),
            ):
                assert _is_denied(partial(account.post, RULES, wish, DRY)), wish
            assert _is_denied(lambda: account.delete(f"{RULES}/{others['metadata']['name']}"))
    finally:
        tainting.drop(f"{RULES}/{others['metadata']['name']}")
