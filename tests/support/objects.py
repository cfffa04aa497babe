"""Pods, nodes, namespaces and owners as people make them, small ones and large ones."""

import time
from typing import Any, Final

from gpufence import names
from kube import Client, ConflictError, JsonObject, NotFoundError, ThrottledError, group

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


CRDS: Final = "apiextensions.k8s.io/v1"
_PATIENCE_SECONDS = 60.0


def crd(api_version: str, kind: str, plural: str, *, scale: str = "") -> JsonObject:
    """Make the definition of a kind that takes any spec; `scale` is the path of its replicas."""
    named, _, version = api_version.partition("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    subresources: JsonObject = {"status": {}}
    if scale:
        subresources["scale"] = {
            "specReplicasPath": scale,
            "statusReplicasPath": ".status.replicas",
        }
    return {
        "apiVersion": CRDS,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{named}"},
        "spec": {
            "group": named,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": subresources,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": anything, "status": anything},
                        }
                    },
                }
            ],
        },
    }


NOTEBOOKS: Final = crd("kubeflow.org/v1", "Notebook", "notebooks")
WORKLOADS: Final = crd("kueue.x-k8s.io/v1beta1", "Workload", "workloads")
FARMS: Final = crd("example.com/v1", "Farm", "farms", scale=".spec.replicas")
SCALED_OBJECTS: Final = crd("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
ROLLOUTS: Final = crd("argoproj.io/v1alpha1", "Rollout", "rollouts", scale=".spec.replicas")
HERDS: Final = crd("example.com/v1", "Herd", "herds", scale=".spec.size")


def unconvertible(definition: JsonObject, version: str) -> JsonObject:
    """Return a kind whose objects cannot be listed: kept in one version, preferred in another."""
    spec = definition["spec"]
    (kept,) = spec["versions"]
    nowhere = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    shown = {**kept, "name": version, "storage": False}
    conversion = {"strategy": "Webhook", "webhook": nowhere}
    changed = {"versions": [kept, shown], "conversion": conversion}
    return {**definition, "spec": {**spec, **changed}}


def define(client: Client, *definitions: JsonObject) -> None:
    """Make kinds, once those of their names are gone, and wait until they are served."""
    for definition in definitions:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not _made(client, definition):
            assert time.monotonic() < deadline, "it is still being deleted"
            time.sleep(0.1)
    for definition in definitions:
        spec = definition["spec"]
        version = spec["versions"][0]["name"]
        path = group(f"{spec['group']}/{version}", spec["names"]["plural"])
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                client.get(path)
                break
            except (NotFoundError, ThrottledError):
                assert time.monotonic() < deadline, f"{path} is not served"
                time.sleep(0.1)


def _made(client: Client, definition: JsonObject) -> bool:
    try:
        client.post(group(CRDS, "customresourcedefinitions"), definition)
    except ConflictError:
        return False
    return True


def undefine(client: Client, *definitions: JsonObject) -> None:
    for definition in definitions:
        name = definition["metadata"]["name"]
        client.delete(group(CRDS, "customresourcedefinitions", name))


def deployment(name: str, replicas: int = 1, **pod_spec: object) -> JsonObject:
    """Make a Deployment whose pods never need an image."""
    labels = {"app": name}
    container = {"name": "main", "image": "none"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], **pod_spec},
            },
        },
    }


def controlled(item: JsonObject, by: JsonObject) -> JsonObject:
    """Return an object that says who controls it."""
    reference = {
        "apiVersion": by["apiVersion"],
        "kind": by["kind"],
        "name": by["metadata"]["name"],
        "uid": by["metadata"]["uid"],
        "controller": True,
    }
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [reference]}}


_MODELS: Final = (
    (15360, "Tesla-T4", 7, 5),
    (81559, "NVIDIA-H100-80GB-HBM3", 9, 0),
    (23034, "L4", 8, 9),
)


def large_pod(settings: int = 24, volumes: int = 6) -> dict[str, Any]:
    resources = {"aliyun.com/gpu-mem": "3", "cpu": "4", "memory": "16Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "trainer-7c8f9b6d5-",
            "namespace": "team-a",
            "labels": {"app": "trainer", "pod-template-hash": "7c8f9b6d5", "team": "vision"},
            "annotations": {f"example.com/note-{n}": "a note of some length" for n in range(4)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "trainer-7c8f9b6d5",
                    "uid": "0a4dd9b0-8f4b-4a3c-8a43-0e2a4c6f8d10",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed(settings)],
        },
        "spec": {
            "containers": [
                {
                    "name": "trainer",
                    "image": "registry.example.com/vision/trainer:1.42.0",
                    "command": ["python", "-m", "train", "--epochs", "100"],
                    "env": [
                        {"name": f"TRAINER_OPTION_{n}", "value": f"value-{n}"}
                        for n in range(settings)
                    ],
                    "resources": {"limits": resources, "requests": resources},
                    "volumeMounts": [
                        {"name": f"data-{n}", "mountPath": f"/data/{n}"} for n in range(volumes)
                    ],
                }
            ],
            "volumes": [
                {"name": f"data-{n}", "persistentVolumeClaim": {"claimName": f"claim-{n}"}}
                for n in range(volumes)
            ],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "tolerations": [
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
            ],
        },
        "status": {},
    }


def _managed(settings: int) -> dict[str, Any]:
    container: dict[str, Any] = {
        "f:env": {f'k:{{"name":"TRAINER_OPTION_{n}"}}': {} for n in range(settings)}
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:containers": {'k:{"name":"trainer"}': container}}},
    }


def large_node(number: int, features: int = 40, images: int = 50) -> dict[str, Any]:
    memory, model, major, minor = _MODELS[number % len(_MODELS)]
    name = f"gpu-node-{number:05}.region-1.compute.internal"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"region-1{'abc'[number % 3]}",
        "nvidia.com/gpu.memory": str(memory),
        "nvidia.com/gpu.product": model,
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.compute.major": str(major),
        "nvidia.com/gpu.compute.minor": str(minor),
        **{f"feature.node.kubernetes.io/cpu-cpuid.FLAG{n}": "true" for n in range(features)},
    }
    offered = {"cpu": "96", "memory": "1Ti", "pods": "110", "aliyun.com/gpu-count": "8"}
    offered["aliyun.com/gpu-mem"] = str(memory // 1024 * 8)
    pulled = [
        {
            "names": [f"registry.example.com/team/image-{n}@sha256:{'0' * 64}"],
            "sizeBytes": n * 10**6,
        }
        for n in range(images)
    ]
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": str(number), "labels": labels},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"cloud:///{name}"},
        "status": {"allocatable": offered, "capacity": offered, "images": pulled},
    }
