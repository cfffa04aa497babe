"""Memory that Kubernetes' own scheduler counts by resource claims, and who holds pods to it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gpufence import names
from gpufence.plan import read_plan
from gpufence.quantity import GIB, MIB
from kube import core, group
from simulator.node import SimulatedNode
from tests.support import claims
from tests.support.agent.node_site import Fenced, NodeSite, events, is_gone, wait_until_gone
from tests.support.kubernetes import BY_CLAIMS, BY_MEMORY
from tests.support.node_ground import pod, workload
from tests.support.observing import wait_until
from tests.support.webhook_site import annotations_of

pytestmark = pytest.mark.since(*BY_MEMORY, skip=True)

TEMPLATE = "part"
CONSUMED = 3 * GIB  # 3000Mi, rounded up by the driver's steps of 256Mi
Json = dict[str, Any]


def claims_in(ground: Fenced) -> list[Json]:
    path = group(names.RESOURCE_GROUP, "namespaces", ground.namespace, "resourceclaims")
    return ground.admin.list(path).items


def make(ground: Fenced, kind: str, item: Json) -> None:
    path = group(names.RESOURCE_GROUP, "namespaces", ground.namespace, kind)
    ground.admin.post(path, item)


def create(ground: Fenced, name: str, script: str, ref: Json) -> Json:
    """Make a pod that uses one claim."""
    container = claims.claiming(workload(script, "--context", "100Mi"), gpu="")
    item = pod(name, container, resourceClaims=[ref])
    return ground.admin.post(core("namespaces", ground.namespace, "pods"), item)


def is_placed(ground: Fenced, name: str) -> Callable[[], bool]:
    return lambda: bool((ground.get(name) or {"spec": {}})["spec"].get("nodeName"))


def plan_limit(item: Json | None) -> int | None:
    return None if item is None else read_plan(annotations_of(item)[names.PLAN]).limit_bytes


@pytest.mark.since(*BY_MEMORY)
def test_who_takes_more_than_its_claim_goes_and_the_claim_is_free_again(
    site: NodeSite, full_namespace: str
) -> None:
    """
    Two pods share a card by claims of one template: what was asked for counts until they are bound,
    what was consumed from then on, and the agent evicts the one that takes more.
    """
    ground = site.ground(full_namespace)
    make(ground, "resourceclaimtemplates", claims.template(TEMPLATE, claims.request("3000Mi")))
    ref = claims.by_template("gpu", TEMPLATE)
    with site.agent() as agent:
        asked = [create(ground, "good", "hold 2800Mi", ref)]
        asked.append(create(ground, "greedy", "hold 5Gi", ref))
        for name in ("good", "greedy"):
            wait_until(is_placed(ground, name))
        bound = ground.get("good")
        wait_until_gone(ground, "greedy", agent)
        wait_until(lambda: bool(events(ground, names.EVICTED)))
        (told,) = events(ground, names.EVICTED)
        wait_until(lambda: ground.get("greedy") is None)
        wait_until(lambda: len(claims_in(ground)) == 1)
        create(ground, "next", "hold 1Gi", ref)
        wait_until(is_placed(ground, "next"))

    assert [3000 * MIB] * 2 == [plan_limit(item) for item in asked]
    assert bound is not None
    assert CONSUMED == plan_limit(bound)
    assert "claims-a" == annotations_of(bound)[names.NODE]
    assert "Tesla T4" in annotations_of(bound)[names.CARD]
    assert "3072 MiB" in told["message"]
    assert not is_gone(ground, "good")


def test_pods_of_one_claim_may_hold_it_together(site: NodeSite, full_namespace: str) -> None:
    """
    Of two pods that share a claim one may hold most of it while the other holds little; once both
    together hold more, the larger one goes.
    """
    ground = site.ground(full_namespace)
    make(ground, "resourceclaims", claims.claim("both", claims.request("8Gi")))
    ref = claims.by_name("gpu", "both")
    with site.agent() as agent:
        create(ground, "large", "hold 6Gi", ref)
        create(ground, "small", "hold 1Gi; wait 8s; hold 4Gi", ref)
        ground.wait_for_log("large", "script done")
        wait_until(lambda: "small" in {pod.name for pod in agent.snapshot().pods if pod.uses})
        together = not is_gone(ground, "large")
        wait_until_gone(ground, "large", agent)

    assert together
    assert not is_gone(ground, "small")


def test_what_cannot_be_known_is_said_and_nothing_is_told(
    site: NodeSite, full_namespace: str
) -> None:
    """
    A claim that does not exist, and one of another driver's devices: a word in the plan, no limit.
    """
    ground = site.ground(full_namespace)
    missing = create(ground, "missing", "hold 1Gi", claims.by_name("gpu", "nowhere"))
    foreign = claims.request(name="nic") | {"exactly": {"deviceClassName": "nic.example.com"}}
    make(ground, "resourceclaims", claims.claim("network", foreign))
    other = create(ground, "other", "hold 1Gi", claims.by_name("gpu", "network"))

    assert (
        "not fenced: resource claim nowhere does not exist"
        == annotations_of(missing)[names.SUMMARY]
    )
    assert "" == read_plan(annotations_of(missing)[names.PLAN]).dialect
    assert {} == annotations_of(other)


def test_a_claim_made_again_by_its_name_counts_as_it_is_now(
    site: NodeSite, full_namespace: str
) -> None:
    """
    A pod is bound with what the claim of that name has consumed now, not with what one before had.
    """
    ground = site.ground(full_namespace)
    ref = claims.by_name("gpu", "again")
    make(ground, "resourceclaims", claims.claim("again", claims.request("4Gi")))
    create(ground, "first", "hold 1Gi", ref)
    wait_until(is_placed(ground, "first"))
    first = ground.get("first")
    ground.delete("first", "--now")
    path = group(names.RESOURCE_GROUP, "namespaces", ground.namespace, "resourceclaims", "again")
    ground.admin.delete(path)
    wait_until(lambda: not claims_in(ground))
    make(ground, "resourceclaims", claims.claim("again", claims.request("2Gi")))
    create(ground, "second", "hold 1Gi", ref)
    wait_until(is_placed(ground, "second"))

    assert (4 * GIB, 2 * GIB) == (plan_limit(first), plan_limit(ground.get("second")))


@pytest.mark.since(*BY_CLAIMS)
@pytest.mark.usefixtures("webhook")
def test_the_nodes_slice_says_what_nvml_says(site: NodeSite, node: SimulatedNode) -> None:
    """The simulated driver publishes each card by the UUID under which NVML lists it."""
    listed = site.plane.kubectl("get", "resourceslices", "-o", "json").stdout
    devices = [
        device["attributes"]["uuid"]["string"]
        for item in json.loads(listed)["items"]
        for device in item["spec"]["devices"]
    ]

    assert [card.uuid for card in node.state.cards] == devices
