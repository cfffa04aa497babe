"""Profiles that say so are the limits of pods that are made from now on: on a real API server."""

from collections.abc import Iterator
from typing import Any

import pytest

from gpufence import names
from gpufence.need.profile import KIND, profile_name, write_status
from gpufence.plan import ProfileUsed, read_plan
from kube import PatchType, group
from kube.kinds import ApiKind
from tests.support import objects
from tests.support.builders import NEED_KEY, need_summary
from tests.support.observing import wait_until
from tests.support.site import RIGHTS
from tests.support.webhook_site import Webhook, WebhookSite, annotations_of, environment
from tools.manifests import COMPONENTS
from tools.manifests import objects as manifests

PROFILE = ApiKind(names.PROFILE_GROUP, KIND, names.PROFILES)
APPLIED = "gpufence_webhook_applied_profiles"
OWNER = "web"


@pytest.fixture(scope="module")
def profiled(site: WebhookSite) -> Iterator[WebhookSite]:
    """Install the kind of profiles, and the webhook's right to read them."""
    kinds = RIGHTS | {"CustomResourceDefinition"}
    items = [item for item in manifests(COMPONENTS / "need") if item["kind"] in kinds]
    site.apply(*items)
    wait_until(lambda: site.serves(PROFILE.everywhere))
    yield site
    site.drop(
        group(
            "apiextensions.k8s.io/v1", "customresourcedefinitions", "gpumemoryprofiles.gpufence.io"
        )
    )


@pytest.fixture(scope="module")
def applying(profiled: WebhookSite) -> Iterator[Webhook]:
    with profiled.webhook() as running, profiled.calling(running.port, running.calls):
        yield running


def write_profile(site: WebhookSite, namespace: str, amount: int, **spec: str) -> None:
    """Write a profile as people and the controller do."""
    name = profile_name("Deployment", OWNER)
    target = {"kind": "Deployment", "name": OWNER}
    body = {
        "apiVersion": names.PROFILE_GROUP,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"targetRef": target, **spec},
    }
    made = site.admin.post(PROFILE.path(namespace), body)
    status = write_status(
        [need_summary(key=NEED_KEY._replace(namespace=namespace))], 1, {"main": amount}
    )
    site.admin.put(f"{PROFILE.path(namespace, name)}/status", {**made, "status": status})


def pod_of_owner(name: str, **more: Any) -> dict[str, Any]:
    """Make a pod as the ReplicaSet of the Deployment does."""
    item = objects.pod(name, {names.NVIDIA_GPU: "1"}, **more)
    item["metadata"] |= {
        "labels": {"pod-template-hash": "5f"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{OWNER}-5f",
                "uid": "0",
                "controller": True,
            }
        ],
    }
    return item


def test_the_next_pod_of_an_owner_has_the_target_for_its_limit(
    profiled: WebhookSite, applying: Webhook
) -> None:
    """
    In its annotation, its frameworks' settings, and its plan with the profile's name; nobody can
    raise it afterwards, and no pod of anybody else has it.
    """
    with profiled.namespace("cap") as name:
        before = profiled.create(name, pod_of_owner("before"))
        write_profile(profiled, name, 4 * 2**30, apply="AtCreate")
        wait_until(lambda: applying.metric(APPLIED) == 1)
        made = profiled.create(name, pod_of_owner("after"))
        other = profiled.create(name, objects.pod("other", {names.NVIDIA_GPU: "1"}))
        patch = {"metadata": {"annotations": {names.MEMORY: "9Gi"}}}
        raised = profiled.plane.kubectl(
            *("patch", "pod", "after", "-n", name, "--type", "merge", "-p", str(patch)),
            check=False,
        )
        profiled.admin.patch(
            PROFILE.path(name, profile_name("Deployment", OWNER)),
            {"spec": {"apply": "Never"}},
            PatchType.MERGE,
        )
        wait_until(lambda: applying.metric(APPLIED) == 0)
        again = profiled.create(name, pod_of_owner("again"))

    assert "4096Mi" == annotations_of(made)[names.MEMORY]
    assert ProfileUsed("deployment-web", 1) == read_plan(annotations_of(made)[names.PLAN]).profile
    assert names.XLA_FRACTION in environment(made)
    assert 0 != raised.returncode
    assert [False] * 3 == [names.MEMORY in annotations_of(item) for item in (before, other, again)]


def test_no_target_is_above_the_namespaces_ceiling(
    profiled: WebhookSite, applying: Webhook
) -> None:
    """Whoever may write a profile, or even its status, gets no more than he may grant himself."""
    with profiled.namespace("evict", **{names.MAX_MEMORY: "2Gi"}) as name:
        write_profile(profiled, name, 2**50, apply="AtCreate")
        wait_until(lambda: applying.metric(APPLIED) == 1)
        made = profiled.create(name, pod_of_owner("huge"))
        plan = read_plan(annotations_of(made)[names.PLAN])
        profiled.drop(PROFILE.path(name, profile_name("Deployment", OWNER)))
        wait_until(lambda: applying.metric(APPLIED) == 0)

    assert 2 * 2**30 == plan.limit_bytes
