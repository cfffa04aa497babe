"""
The review that is measured: a training pod of 5 KB, as a Deployment makes it.
"""

from __future__ import annotations

import json
from typing import Any

SETTINGS, VOLUMES = 24, 6


def pod() -> dict[str, Any]:
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
            "managedFields": [_managed()],
        },
        "spec": {
            "containers": [
                {
                    "name": "trainer",
                    "image": "registry.example.com/vision/trainer:1.42.0",
                    "command": ["python", "-m", "train", "--epochs", "100"],
                    "env": [
                        {"name": f"TRAINER_OPTION_{n}", "value": f"value-{n}"}
                        for n in range(SETTINGS)
                    ],
                    "resources": {"limits": resources, "requests": resources},
                    "volumeMounts": [
                        {"name": f"data-{n}", "mountPath": f"/data/{n}"} for n in range(VOLUMES)
                    ],
                }
            ],
            "volumes": [
                {"name": f"data-{n}", "persistentVolumeClaim": {"claimName": f"claim-{n}"}}
                for n in range(VOLUMES)
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


def _managed() -> dict[str, Any]:
    container: dict[str, Any] = {
        "f:env": {f'k:{{"name":"TRAINER_OPTION_{n}"}}': {} for n in range(SETTINGS)}
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:containers": {'k:{"name":"trainer"}': container}}},
    }


def review() -> bytes:
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        "object": pod(),
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()
