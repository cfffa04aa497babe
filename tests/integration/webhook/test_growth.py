"""Pods that exist, on a real API server: what may be added to them, and what may not."""

from collections.abc import Iterator
from typing import Any

import pytest

from kube import ForbiddenError, InvalidRequestError, PatchType, core
from tests.support import objects
from tests.support.site import wait_until_enforced
from tests.support.webhook_site import WebhookSite

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
GROWN: dict[str, dict[str, Any]] = {
    "metadata.labels": {"metadata": {"labels": {f"k{n}": "v" for n in range(12_800)}}},
    "metadata.finalizers": {"metadata": {"finalizers": [f"x.io/{n}" for n in range(300)]}},
    "metadata.ownerReferences: 300": {
        "metadata": {"ownerReferences": [{**OWNER, "uid": f"u{n}"} for n in range(300)]}
    },
    "metadata.ownerReferences: a text": {
        "metadata": {"ownerReferences": [{**OWNER, "name": "n" * 300_000}]}
    },
    "spec.tolerations": {
        "spec": {
            "tolerations": [
                {"operator": "Exists"},
                *({"key": f"k{n}", "operator": "Exists"} for n in range(300)),
            ]
        }
    },
    "spec.containers[].image": {"spec": {"containers": [{"name": "main", "image": "i" * 300_000}]}},
}
WITHIN: dict[str, dict[str, Any]] = {
    "labels": {"metadata": {"labels": {f"k{n}": "v" for n in range(200)}}},
    "finalizers": {"metadata": {"finalizers": ["x.io/a"]}},
    "owner": {"metadata": {"ownerReferences": [OWNER]}},
    "image": {"spec": {"containers": [{"name": "main", "image": "other"}]}},
    "annotations": {"metadata": {"annotations": {"note": "x" * 100_000}}},
}


@pytest.fixture(scope="module")
def fenced(site: WebhookSite) -> Iterator[str]:
    """Lend a namespace with a mode and a pod in it, once policies are enforced."""
    wait_until_enforced(site)
    with site.namespace("evict") as name:
        site.create(name, objects.pod("grows"))
        yield name


def patched(site: WebhookSite, namespace: str, change: dict[str, Any], part: str = "") -> str:
    """Try to change the pod, keeping nothing of it; return why that is refused."""
    path = core("namespaces", namespace, "pods", "grows", *([part] if part else []))
    try:
        site.admin.patch(path, change, PatchType.STRATEGIC, {"dryRun": "All"})
    except (ForbiddenError, InvalidRequestError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("field", sorted(GROWN))
def test_a_pod_cannot_grow_beyond_eviction(site: WebhookSite, fenced: str, field: str) -> None:
    """What has no bound of the API server's has one of gpufence's, on every path that takes it."""
    said = patched(site, fenced, GROWN[field])

    assert field in said
    assert "too large to be evicted" in said


def test_labels_cannot_grow_by_the_status(site: WebhookSite, fenced: str) -> None:
    """An update of the status that brings labels is no way around."""
    assert "too large" in patched(site, fenced, GROWN["metadata.labels"], "status")


@pytest.mark.parametrize("what", sorted(WITHIN))
def test_a_pod_can_still_be_changed(site: WebhookSite, fenced: str, what: str) -> None:
    """What people change is far below the bounds."""
    assert "" == patched(site, fenced, WITHIN[what])


def test_a_pod_elsewhere_is_none_of_our_business(site: WebhookSite, fenced: str) -> None:
    """In a namespace without a mode nothing is refused."""
    assert fenced
    with site.namespace(None) as name:
        site.create(name, objects.pod("grows"))

        assert "" == patched(site, name, GROWN["metadata.labels"])
