"""Which pods the API server asks about, and what may be added to those that exist."""

from collections.abc import Iterator
from typing import Any

import pytest

from gpufence import names
from gpufence.dialects import ANNOTATION_KEYS, GPU_RESOURCES
from kube import ForbiddenError, InvalidRequestError, PatchType, core
from tests.support import objects
from tests.support.site import wait_until_enforced
from tests.support.webhook_site import Webhook, WebhookSite


def limited(resource: str) -> dict[str, Any]:
    return objects.pod("p", {resource: "1"})


def marked(key: str) -> dict[str, Any]:
    item = objects.pod("p")
    item["metadata"]["annotations"] = {key: "1"}
    return item


def with_init(limits: dict[str, str] | None) -> dict[str, Any]:
    init: dict[str, Any] = {"name": "init", "image": "none"}
    if limits is not None:
        init["resources"] = {"limits": limits}
    return objects.pod("p", initContainers=[init])


def second(limits: dict[str, str]) -> dict[str, Any]:
    item = objects.pod("p")
    item["spec"]["containers"].append(
        {"name": "second", "image": "none", "resources": {"limits": limits}}
    )
    return item


def mirror(item: dict[str, Any]) -> dict[str, Any]:
    item["metadata"].setdefault("annotations", {})[names.MIRROR] = "hash"
    item["spec"]["nodeName"] = "conditions-node"
    return item


def bare() -> dict[str, Any]:
    item = objects.pod("p")
    del item["spec"]["tolerations"]
    return item


def sidecar() -> dict[str, Any]:
    item = with_init({names.VOLCANO_MEMORY: "1"})
    item["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    return item


ASKED: dict[str, dict[str, Any]] = {
    **{resource: limited(resource) for resource in GPU_RESOURCES},
    **{key: marked(key) for key in ANNOTATION_KEYS},
    "mig": limited("nvidia.com/mig-1g.5gb"),
    "mig with media": limited("nvidia.com/mig-1g.10gb.me"),
    "gpu in an init container": with_init({names.GPUSHARE_MEMORY: "1"}),
    "gpu in a sidecar": sidecar(),
    "gpu in the second container": second({names.HAMI_MEMORY: "100"}),
    "our annotation": marked(names.MEMORY),
    "our annotation for a container": marked(f"{names.MEMORY_OF_CONTAINER}main"),
    "a forged plan": marked(names.PLAN),
    "a forged slot": marked("env.gpufence.io/s0"),
    "requests and limits": objects.pod("p") | {},
}
ASKED["requests and limits"]["spec"]["containers"][0]["resources"] = {
    "limits": {names.NVIDIA_GPU: "1", "cpu": "2"},
    "requests": {names.NVIDIA_GPU: "1", "cpu": "1"},
}
PASSED: dict[str, dict[str, Any]] = {
    "nothing": objects.pod("p"),
    "the least": bare(),
    "cpu": objects.pod("p", {"cpu": "1", "memory": "1Gi"}),
    "another device": limited("amd.com/gpu"),
    "a similar resource": limited("nvidia.com/gpus"),
    "gpushare's cores": limited("aliyun.com/gpu-core"),
    "an init container without resources": with_init(None),
    "an init container with cpu": with_init({"cpu": "1"}),
    "other annotations": marked("example.com/gpufence.io"),
    "a similar annotation": marked("gpu-memory.example.com/x"),
    "a mirror pod": mirror(marked(names.MEMORY)),
    "a mirror pod with a gpu": mirror(limited(names.NVIDIA_GPU)),
}


@pytest.fixture(scope="module")
def fenced(site: WebhookSite) -> Iterator[str]:
    """Lend a namespace in which pods are only tried."""
    with site.namespace("cap") as name:
        yield name


def test_the_table_is_long_enough() -> None:
    """The cases below are what the conditions are judged by."""
    assert 25 <= len(ASKED) + len(PASSED)


@pytest.mark.parametrize("case", ASKED)
def test_pods_that_may_use_a_gpu_are_asked_about(
    site: WebhookSite, webhook: Webhook, fenced: str, case: str
) -> None:
    """Each way to declare GPU memory, and each annotation of ours, brings a pod to the webhook."""
    before = webhook.calls()
    site.create(fenced, ASKED[case], dry_run=True)

    assert before + 1 <= webhook.calls()


@pytest.mark.parametrize("case", PASSED)
def test_all_others_pass_by(site: WebhookSite, webhook: Webhook, fenced: str, case: str) -> None:
    """A pod that has nothing to do with GPUs, and a mirror of a static pod, cost no request."""
    before = webhook.calls()
    site.create(fenced, PASSED[case], dry_run=True)

    assert before == webhook.calls()


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
def fenced_of_growth(site: WebhookSite) -> Iterator[str]:
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
def test_a_pod_cannot_grow_beyond_eviction(
    site: WebhookSite, fenced_of_growth: str, field: str
) -> None:
    """What has no bound of the API server's has one of gpufence's, on every path that takes it."""
    said = patched(site, fenced_of_growth, GROWN[field])

    assert field in said
    assert "too large to be evicted" in said


def test_labels_cannot_grow_by_the_status(site: WebhookSite, fenced_of_growth: str) -> None:
    """An update of the status that brings labels is no way around."""
    assert "too large" in patched(site, fenced_of_growth, GROWN["metadata.labels"], "status")


@pytest.mark.parametrize("what", sorted(WITHIN))
def test_a_pod_can_still_be_changed(site: WebhookSite, fenced_of_growth: str, what: str) -> None:
    """What people change is far below the bounds."""
    assert "" == patched(site, fenced_of_growth, WITHIN[what])


def test_a_pod_elsewhere_is_none_of_our_business(site: WebhookSite, fenced_of_growth: str) -> None:
    """In a namespace without a mode nothing is refused."""
    assert fenced_of_growth
    with site.namespace(None) as name:
        site.create(name, objects.pod("grows"))

        assert "" == patched(site, name, GROWN["metadata.labels"])
