"""Claims that come late, are another pod's, or are made by Kubernetes' own scheduler."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gpufence import names
from gpufence.quantity import GIB, MIB
from kube import core, group
from tests.integration.claims.test_claims import (
    claims_in,
    create,
    is_placed,
    make,
    plan_limit,
)
from tests.support import claims
from tests.support.agent.node_site import Fenced, NodeSite, is_gone, wait_until_gone
from tests.support.kubernetes import BY_MEMORY
from tests.support.node_ground import pod, workload
from tests.support.observing import wait_until
from tests.support.webhook_site import annotations_of

pytestmark = pytest.mark.since(*BY_MEMORY, skip=True)

BY_CLASS = f"{names.DRA_CLASS_PREFIX}{claims.CLASS}"
DEFAULT = GIB  # what the simulated driver gives a claim that asks for no amount
Json = dict[str, Any]


def extended(ground: Fenced, name: str) -> Json:
    """Make a pod for which the scheduler makes a claim."""
    resources = {"limits": {BY_CLASS: "1"}}
    container = workload("hold 100Mi", "--context", "100Mi", resources=resources)
    item = pod(name, container)
    return ground.admin.post(core("namespaces", ground.namespace, "pods"), item)


def bound(ground: Fenced, name: str) -> Json:
    wait_until(is_placed(ground, name))
    found = ground.get(name)
    assert found is not None
    return found


@contextmanager
def devices(ground: Fenced, of: str, driver: str, memory: str) -> Iterator[None]:
    """Have the node publish a device of another kind, with a class for it."""
    made = {
        "deviceclasses": claims.class_of(of, driver),
        "resourceslices": claims.slice_of(ground.node.name, of, driver, memory),
    }
    for kind, item in made.items():
        ground.admin.post(group(names.RESOURCE_GROUP, kind), item)
    try:
        yield
    finally:
        for kind, item in made.items():
            ground.admin.delete(group(names.RESOURCE_GROUP, kind, item["metadata"]["name"]))


def claimed(ground: Fenced, of: str, memory: str) -> tuple[Json, Json]:
    """Make a pod whose claim asks for 3000Mi of it; return it at create, and bound."""
    asking = {"deviceClassName": of, "capacity": {"requests": {memory: "3000Mi"}}}
    make(ground, "resourceclaims", claims.claim(of, {"name": "gpu", "exactly": asking}))
    made = create(ground, of, "hold 100Mi", claims.by_name("gpu", of))
    return made, bound(ground, of)


def test_memory_of_another_drivers_devices_is_never_a_limit(
    site: NodeSite, full_namespace: str
) -> None:
    """The scheduler counts it in the same words, and the class says whose it is."""
    ground = site.ground(full_namespace)
    with devices(ground, "store", "store.example.com", "memory"):
        made, found = claimed(ground, "store", "memory")

    assert [{}, {}] == [annotations_of(item) for item in (made, found)]


def test_memory_by_the_drivers_name_is_the_same(site: NodeSite, full_namespace: str) -> None:
    """Of a card of a class of one's own, rounded up by its policy."""
    ground = site.ground(full_namespace)
    with devices(ground, "large", names.DRA_DRIVER, "gpu.nvidia.com/memory"):
        made, found = claimed(ground, "large", "gpu.nvidia.com/memory")

    assert [3000 * MIB, 3 * GIB] == [plan_limit(item) for item in (made, found)]
    assert "40960Mi" == annotations_of(found)[names.CARD]


def test_who_uses_another_pods_claim_by_its_name_is_held_to_it(
    site: NodeSite, full_namespace: str
) -> None:
    """The scheduler lets it and counts the claim once, so that both together have that."""
    ground = site.ground(full_namespace)
    make(ground, "resourceclaimtemplates", claims.template("part", claims.request("2Gi")))
    with site.agent() as agent:
        create(ground, "owner", "hold 1Gi", claims.by_template("gpu", "part"))
        wait_until(is_placed(ground, "owner"))
        (claim,) = claims_in(ground)
        name = claim["metadata"]["name"]
        create(ground, "guest", "hold 5Gi", claims.by_name("gpu", name))
        wait_until_gone(ground, "guest", agent)

    assert not is_gone(ground, "owner")


def test_a_pod_that_was_made_before_its_claim_has_an_exact_plan_in_the_end(
    site: NodeSite, full_namespace: str
) -> None:
    """It was told nothing, and the plan says who holds it."""
    ground = site.ground(full_namespace)
    early = create(ground, "early", "hold 1Gi", claims.by_name("gpu", "late"))
    make(ground, "resourceclaims", claims.claim("late", claims.request("2Gi")))
    found = bound(ground, "early")

    assert plan_limit(early) is None
    assert 2 * GIB == plan_limit(found)
    assert "its agent alone holds it" in annotations_of(found)[names.SUMMARY]


def test_a_resource_that_names_a_class_is_told_what_its_claim_gives(
    site: NodeSite, full_namespace: str
) -> None:
    """
    At create what the policy gives at least; the scheduler has made the claim, and said so on the
    pod, before it binds that.
    """
    ground = site.ground(full_namespace)
    made = extended(ground, "by-class")
    found = bound(ground, "by-class")

    assert [DEFAULT, DEFAULT] == [plan_limit(item) for item in (made, found)]
    assert "consumed by its claims" in annotations_of(found)[names.SUMMARY]
    assert ground.node.name == annotations_of(found)[names.NODE]
