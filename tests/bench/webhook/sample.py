"""
The reviews that are measured: training pods of 5 KB. The same again and again, those of a series,
and pods of which each is another.
"""

import json
from typing import Any

from tests.support.objects import large_pod

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(pod_object: dict[str, Any] | None = None, uid: str = UID) -> bytes:
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        "object": pod_object or large_pod(),
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()


def of_a_series(number: int) -> bytes:
    """Return the review of one pod of many from one template: its name and uids are its own."""
    one = large_pod()
    one["metadata"] |= {"name": f"trainer-{number}", "uid": _uid(number)}
    one["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = f"trainer-{number}"
    return review(one, _uid(number))


def different(number: int) -> bytes:
    """
    Return the review of a pod like no other: its texts, image, command, variables and limit are its
    own. Some wish for something themselves, some start a server, as people's pods do.
    """
    one = large_pod()
    name = f"job-{number}"
    one["metadata"] |= {"name": name, "generateName": f"{name}-", "uid": _uid(number)}
    one["metadata"]["labels"] = {"app": name, "pod-template-hash": f"{number:08x}"}
    one["metadata"]["annotations"] = {
        f"example.com/note-{n}": f"note {n} of {name}" for n in range(4)
    }
    one["metadata"]["annotations"]["gpufence.io/memory"] = f"{700 + number % 10_007}Mi"
    container = one["spec"]["containers"][0]
    container["name"] = f"main-{number}"
    container["image"] = f"registry.example.com/team-{number % 97}/app-{number}:1.{number}"
    container["command"] = ["python", "-m", f"job_{number}", "--seed", str(number)]
    container["resources"]["limits"]["aliyun.com/gpu-mem"] = str(1 + number % 14)
    for n, entry in enumerate(container["env"]):
        entry["value"] = f"value-{n}-of-{number}"
    if not number % 4:
        wish = {"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": f"0.{number % 90 + 10}"}
        container["env"].append(wish)
    if not number % 10:
        container["command"] = ["vllm", "serve", f"model-{number}"]
    return review(one, _uid(number))


def _uid(number: int) -> str:
    return f"705ab4f5-6393-11e8-b7cc-{number:012x}"
