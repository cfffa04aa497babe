"""Kubernetes' own quotas on GPU memory, by each sharing system, on a real API server."""

from collections.abc import Iterator
from typing import Any

import pytest

from gpufence import names
from gpufence.dialects import GPU_RESOURCES, UNLISTED
from kube import Client, ClientSettings, ForbiddenError, PatchType, connect, core
from simulator.controlplane import ControlPlane
from tests.support.observing import wait_until


@pytest.fixture
def admin(control_plane: ControlPlane) -> Iterator[Client]:
    with connect(ClientSettings(kubeconfig=str(control_plane.kubeconfig()))) as client:
        yield client


def pod(name: str, resource: str, amount: str) -> dict[str, Any]:
    resources = {"limits": {resource: amount}}
    container = {"name": "main", "image": "none", "resources": resources}
    account = {"automountServiceAccountToken": False}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **account}}


def limit(admin: Client, namespace: str, hard: dict[str, str]) -> None:
    """Make a quota, and count nothing as used yet, as the controller manager would."""
    quotas = core("namespaces", namespace, "resourcequotas")
    admin.post(quotas, {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    used = dict.fromkeys(hard, "0")
    status = {"status": {"hard": hard, "used": used}}
    admin.patch(f"{quotas}/gpus/status", status, PatchType.MERGE)


def limit_pods(admin: Client, namespace: str, resource: str, most: str) -> str:
    """
    Limit pods, and return where they are made once the API server counts them: when the quota was
    made it found none in the namespace, and goes by that until its watch tells of this one.
    """
    limit(admin, namespace, {f"requests.{resource}": most})
    pods = core("namespaces", namespace, "pods")
    wait_until(lambda: is_refused(admin, pods, pod("huge", resource, "99"), {"dryRun": "All"}))
    return pods


def is_refused(
    admin: Client, path: str, item: dict[str, Any], query: dict[str, str] | None = None
) -> bool:
    try:
        admin.post(path, item, query)
    except ForbiddenError as error:
        return "exceeded quota: gpus" in str(error)
    return False


@pytest.mark.parametrize("resource", sorted(GPU_RESOURCES.keys() - UNLISTED))
def test_a_quota_counts_what_the_sharing_system_counts(
    resource: str, admin: Client, namespace: str
) -> None:
    """Two pods fit, the third is refused by the name of the resource."""
    pods = limit_pods(admin, namespace, resource, "7")
    for name in ("first", "second"):
        admin.post(pods, pod(name, resource, "3"))

    with pytest.raises(ForbiddenError, match=f"quota: gpus, requested: requests.{resource}=3"):
        admin.post(pods, pod("third", resource, "3"))


@pytest.fixture
def implied(admin: Client) -> Iterator[str]:
    """A class of devices that pods may ask for by a resource of its name."""
    path, name = f"/apis/{names.RESOURCE_GROUP}/deviceclasses", "gpu.quota.example"
    spec = {"extendedResourceName": "quota.example/gpu"}
    admin.post(path, {"metadata": {"name": name}, "spec": spec})
    yield name
    admin.delete(f"{path}/{name}")


@pytest.mark.parametrize(
    "counted", ["{}.deviceclass.resource.k8s.io/devices", f"requests.{names.DRA_CLASS_PREFIX}{{}}"]
)
def test_a_quota_counts_claims(counted: str, admin: Client, namespace: str, implied: str) -> None:
    """Claims of a class are counted, also as the resource by which pods imply them."""
    limit(admin, namespace, {counted.format(implied): "1"})
    claims = f"/apis/{names.RESOURCE_GROUP}/namespaces/{namespace}/resourceclaims"
    exactly = {"deviceClassName": implied, "allocationMode": "ExactCount", "count": 1}
    claim = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    names_of = ({"name": f"claim-{number}"} for number in range(100))

    wait_until(lambda: is_refused(admin, claims, claim | {"metadata": next(names_of)}))


def test_a_quota_counts_what_pods_imply(admin: Client, namespace: str, implied: str) -> None:
    """A pod that asks for a device by its class is counted like one that asks for a resource."""
    resource = f"{names.DRA_CLASS_PREFIX}{implied}"
    pods = limit_pods(admin, namespace, resource, "1")
    admin.post(pods, pod("first", resource, "1"))

    with pytest.raises(ForbiddenError, match="exceeded quota: gpus"):
        admin.post(pods, pod("second", resource, "1"))
