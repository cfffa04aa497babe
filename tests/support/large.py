"""Pods and nodes as large as real ones: training pods of 5 KB, GPU nodes of 10 KB."""

from typing import Any, Final

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
