"""Reviews as an API server sends them."""

import json
from typing import Any


def pod(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trainer", **metadata},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }


def review(**request: Any) -> dict[str, Any]:
    """Make a review of a pod's creation; None leaves a field of the request out."""
    usual = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "somebody"},
        "object": pod(),
        "oldObject": None,
        "dryRun": False,
    }
    said = {key: value for key, value in (usual | request).items() if value is not None}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": said}


def binding(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "trainer", "namespace": "team-a", "uid": "pod-uid", **metadata},
        "target": {"kind": "Node", "name": "node-t4"},
    }


def binding_review(item: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    usual = {
        "kind": {"group": "", "version": "v1", "kind": "Binding"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "binding",
        "name": "trainer",
        "object": item or binding(),
    }
    return review(**(usual | request))


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
