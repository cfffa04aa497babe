"""
What the API server lets the agent do, asked for without doing it.

Evictions and deletions are asked for of a pod that does not exist: who may not is told so (403),
who may is told that there is none (404).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.cluster.cluster import REMEDY, find_identity
from agent.model.state import Identity
from gpufence import names
from gpufence.findings import look, ok, wrong
from gpufence.mode import Mode, highest_mode
from gpufence.need import need_configmap
from kube import ForbiddenError, KubeError, NotFoundError, PatchType, core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.cluster import ClusterSettings
    from gpufence.findings import Finding
    from kube import Client

NOBODY: Final = "gpufence-check-no-such-pod"
_DRY = {"dryRun": "All"}


def check_api(client: Client, settings: ClusterSettings) -> Iterator[Finding]:
    """Yield what was found; where nobody can be reached, that is all."""
    try:
        version = client.get("/version", timeout_seconds=settings.request_seconds)
    except KubeError as error:
        yield wrong(
            "API server",
            str(error),
            "check the network, the service account's token and KUBECONFIG",
        )
        return
    yield ok("API server", f"{version.get('gitVersion')}")
    yield _kill_switch(client, settings)
    yield _need(client, settings)
    yield _may(
        "namespaces",
        lambda: client.get(core("namespaces"), {"limit": 1}),
        "labels can be read",
    )
    yield _may(
        "Node annotation",
        lambda: client.patch(
            core("nodes", settings.node), {"metadata": {"annotations": {}}}, PatchType.MERGE, _DRY
        ),
        "can be written",
    )
    try:
        identity, acting = find_identity(client, settings)
    except KubeError as error:
        yield wrong("pods of this node", str(error), REMEDY)
        return
    yield _identity(identity)
    yield from _rights(acting, settings)


def _rights(acting: Client, settings: ClusterSettings) -> Iterator[Finding]:
    node = settings.node
    pod = core("namespaces", settings.system_namespace, "pods", NOBODY)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": NOBODY, "namespace": settings.system_namespace},
        "deleteOptions": {"dryRun": ["All"]},
    }
    by_node: dict[str, str | int] = {"fieldSelector": f"spec.nodeName={node}", "limit": 1}
    yield _may("pods of this node", lambda: acting.get(core("pods"), by_node), "can be listed")
    by_name = {"fieldSelector": f"metadata.name={node}"}
    yield _node(acting, by_name, node)
    yield _may("evictions", lambda: acting.post(f"{pod}/eviction", eviction, _DRY), "allowed")
    yield _may("deletions", lambda: acting.delete(pod, None, _DRY), "allowed")
    yield _may(
        "conditions of pods",
        lambda: acting.patch(f"{pod}/status", {"status": {}}, PatchType.STRATEGIC, _DRY),
        "can be written",
    )
    yield _may(
        "Events",
        lambda: acting.post(core("namespaces", "default", "events"), _event(node), _DRY),
        "can be written",
    )


def _node(acting: Client, query: dict[str, str], node: str) -> Finding:
    try:
        nodes = acting.get(core("nodes"), query).get("items")
    except KubeError as error:
        return wrong("Node", str(error), REMEDY)
    if not nodes:
        return wrong(
            "Node", f"there is no Node {node}", "set GPUFENCE_NODE to the name kubectl shows"
        )
    return ok("Node", f"{node} is there")


def _event(node: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default", "generateName": "gpufence-check."},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reason": "GPUFenceCheck",
        "message": "never written",
        "type": "Normal",
    }


def _kill_switch(client: Client, settings: ClusterSettings) -> Finding:
    subject = "kill switch"
    path = core("namespaces", settings.system_namespace, "configmaps", names.POLICY_CONFIGMAP)
    where = f"ConfigMap {settings.system_namespace}/{names.POLICY_CONFIGMAP}"
    try:
        data = client.get(path).get("data") or {}
    except NotFoundError:
        return wrong(subject, f"{where} is absent: nobody is evicted", "apply deploy/base/system")
    except KubeError as error:
        return wrong(subject, f"{error}: nobody is evicted", REMEDY)
    highest = highest_mode(data)
    if highest is Mode.EVICT:
        return ok(subject, "evictions are allowed")
    return look(
        subject,
        f"{where} allows {highest} at most: nobody is evicted",
        f"set its key {names.POLICY_MAX_MODE} to {Mode.EVICT} when the time has come",
    )


def _need(client: Client, settings: ClusterSettings) -> Finding:
    name = need_configmap(settings.node)
    path = core("namespaces", settings.system_namespace, "configmaps", name)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return _may("needs of models", lambda: client.put(path, body, _DRY), "can be stored")


def _identity(identity: Identity) -> Finding:
    if identity is Identity.IMPERSONATING:
        return ok("identity", "acts as its own node, bound to it by the API server")
    return look(
        "identity",
        "acts as its own account, whose rights reach the pods of every node",
        "Kubernetes 1.36 and later can bind it to its node: see deploy/base/agent/rbac.yaml",
    )


def _may(subject: str, ask: Callable[[], object], text: str) -> Finding:
    try:
        ask()
    except NotFoundError:
        return ok(subject, text)
    except ForbiddenError as error:
        return wrong(subject, str(error), REMEDY)
    except KubeError as error:
        return look(subject, str(error), "run the check again; the API server had trouble")
    return ok(subject, text)
