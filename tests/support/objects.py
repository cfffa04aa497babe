"""Pods, nodes and namespaces as people make them."""

from typing import Any

from gpufence import names

T4_MIB = 15360
H100_MIB = 81559


def pod(name: str, limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Make a pod that tolerates the state of nodes that no kubelet looks after."""
    container: dict[str, Any] = {"name": "main", "image": "none"}
    if limits:
        container["resources"] = {"limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}], **spec},
    }


def gpu_pod(name: str, units: int = 3, **spec: Any) -> dict[str, Any]:
    return pod(name, {names.GPUSHARE_MEMORY: str(units)}, **spec)


def annotated(item: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """Give a pod annotations; `gpufence_memory` stands for `gpufence.io/memory`."""
    said = {key.replace("gpufence_", "gpufence.io/"): text for key, text in annotations.items()}
    item["metadata"]["annotations"] = {**item["metadata"].get("annotations", {}), **said}
    return item


def namespace(name: str, mode: str | None, **annotations: str) -> dict[str, Any]:
    labels = {} if mode is None else {"gpufence.io/mode": mode}
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    return annotated(item, **annotations)


def node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
    }


def policy(namespace: str, mode: str) -> dict[str, Any]:
    """Make the ConfigMap that is the kill switch."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.POLICY_CONFIGMAP, "namespace": namespace},
        "data": {names.POLICY_MAX_MODE: mode},
    }


def agent_pod(name: str, node: str) -> dict[str, Any]:
    """Make a pod that runs as the agent's account."""
    made = pod(name, nodeName=node, serviceAccountName="gpufence-agent")
    made["spec"]["containers"][0]["name"] = "agent"
    return made


def gpu_labels(model: str, memory_mib: int, capability: tuple[int, int]) -> dict[str, str]:
    """Say of a node what GPU feature discovery says."""
    return {
        "nvidia.com/gpu.product": model,
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.compute.major": str(capability[0]),
        "nvidia.com/gpu.compute.minor": str(capability[1]),
    }


def capacity(units: int) -> dict[str, Any]:
    """Make the status of a node that offers units of GPU memory."""
    offered = {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        names.GPUSHARE_MEMORY: str(units),
        names.GPUSHARE_COUNT: "1",
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": None,
        "lastTransitionTime": None,
    }
    return {"capacity": offered, "allocatable": offered, "conditions": [ready]}
