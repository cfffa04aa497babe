"""Pods whose cards come by claims: users' own, odd ones, and those of a partner that grows."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gpufence import names
from gpufence.plan import read_plan
from gpufence.quantity import GIB, MIB
from kube import core, group
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from tests.support import builders
from tests.support.agent.node_site import (
    Ground,
    NodeSite,
    events,
    is_gone,
    pod,
    wait_until_gone,
    workload,
)
from tests.support.authority import Authority
from tests.support.builders import device_class
from tests.support.observing import wait_until
from tests.support.site import BY_CLAIMS, BY_MEMORY
from tests.support.webhook_site import Webhook, WebhookSite, annotations_of

pytestmark = pytest.mark.since(*BY_MEMORY, skip=True)

NODE = "claims-a"


@pytest.fixture(scope="module")
def node(full_control_plane: ControlPlane) -> Iterator[SimulatedNode]:
    options = NodeOptions(
        kubeconfig=full_control_plane.node_kubeconfig(NODE), name=NODE, cards="T4", unit="claims"
    )
    with SimulatedNode(options) as running:
        yield running


@pytest.fixture(scope="module")
def webhook_site(
    full_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebhookSite]:
    """Lend a webhook's objects, and the class of GPUs."""
    folder = tmp_path_factory.mktemp("tls")
    classes = group(names.RESOURCE_GROUP, "deviceclasses")
    with WebhookSite(full_control_plane, Authority(), folder, full=True) as made:
        made.install()
        made.admin.post(classes, device_class())
        yield made
        made.drop(f"{classes}/{names.DRA_CLASSES[0]}")
        made.remove()


@pytest.fixture(scope="module")
def webhook(webhook_site: WebhookSite) -> Iterator[Webhook]:
    with webhook_site.webhook() as running:
        wait_until(lambda: running.get("/readyz")[0] == 200)
        with webhook_site.calling(running.port, running.calls):
            yield running


@pytest.fixture(scope="module")
def agent_site(
    full_control_plane: ControlPlane, node: SimulatedNode, webhook: Webhook
) -> Iterator[NodeSite]:
    """Lend the node with an agent's rights, beside the webhook."""
    del webhook
    with (
        full_control_plane.fresh_namespace("system") as system,
        NodeSite(full_control_plane, node, system) as ready,
    ):
        ready.install()
        yield ready


@pytest.fixture
def site(agent_site: NodeSite, full_namespace: str) -> Iterator[NodeSite]:
    """Lend it without pods of other tests."""
    del full_namespace
    yield agent_site
    agent_site.clear()


TEMPLATE = "part"
CONSUMED = 3 * GIB  # 3000Mi, rounded up by the driver's steps of 256Mi
Json = dict[str, Any]


def claims_in(ground: Ground) -> list[Json]:
    path = group(names.RESOURCE_GROUP, "namespaces", ground.namespace, "resourceclaims")
    return ground.admin.list(path).items


def make(ground: Ground, kind: str, item: Json) -> None:
    path = group(names.RESOURCE_GROUP, "namespaces", ground.namespace, kind)
    ground.admin.post(path, item)


def create(ground: Ground, name: str, script: str, ref: Json) -> Json:
    """Make a pod that uses one claim."""
    container = builders.claiming(workload(script, "--context", "100Mi"), gpu="")
    item = pod(name, container, resourceClaims=[ref])
    return ground.admin.post(core("namespaces", ground.namespace, "pods"), item)


def is_placed(ground: Ground, name: str) -> Callable[[], bool]:
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
    make(ground, "resourceclaimtemplates", builders.template(TEMPLATE, builders.request("3000Mi")))
    ref = builders.by_template("gpu", TEMPLATE)
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
    make(ground, "resourceclaims", builders.claim("both", builders.request("8Gi")))
    ref = builders.by_name("gpu", "both")
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
    missing = create(ground, "missing", "hold 1Gi", builders.by_name("gpu", "nowhere"))
    foreign = builders.request(name="nic") | {"exactly": {"deviceClassName": "nic.example.com"}}
    make(ground, "resourceclaims", builders.claim("network", foreign))
    other = create(ground, "other", "hold 1Gi", builders.by_name("gpu", "network"))

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
    ref = builders.by_name("gpu", "again")
    make(ground, "resourceclaims", builders.claim("again", builders.request("4Gi")))
    create(ground, "first", "hold 1Gi", ref)
    wait_until(is_placed(ground, "first"))
    first = ground.get("first")
    ground.delete("first", "--now")
    path = group(names.RESOURCE_GROUP, "namespaces", ground.namespace, "resourceclaims", "again")
    ground.admin.delete(path)
    wait_until(lambda: not claims_in(ground))
    make(ground, "resourceclaims", builders.claim("again", builders.request("2Gi")))
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


GROWS = "hold 3Gi; grow 10Mi/s to 7Gi"


def test_a_partner_that_grows_at_each_look_spares_nobody(
    site: NodeSite, full_namespace: str
) -> None:
    """The larger one of two pods that together hold more than their claim goes in time."""
    ground = site.ground(full_namespace)
    make(ground, "resourceclaims", builders.claim("both", builders.request("8Gi")))
    ref = builders.by_name("gpu", "both")
    create(ground, "large", "hold 6Gi", ref)
    ground.wait_for_log("large", "script done")
    create(ground, "grows", GROWS, ref)
    ground.wait_for_start("grows", "main")
    with site.agent() as agent:
        wait_until_gone(ground, "large", agent)

    assert not is_gone(ground, "grows")


BY_CLASS = f"{names.DRA_CLASS_PREFIX}{builders.CLASS}"
DEFAULT = GIB  # what the simulated driver gives a claim that asks for no amount


def extended(ground: Ground, name: str) -> Json:
    """Make a pod for which the scheduler makes a claim."""
    resources = {"limits": {BY_CLASS: "1"}}
    container = workload("hold 100Mi", "--context", "100Mi", resources=resources)
    item = pod(name, container)
    return ground.admin.post(core("namespaces", ground.namespace, "pods"), item)


def bound(ground: Ground, name: str) -> Json:
    wait_until(is_placed(ground, name))
    found = ground.get(name)
    assert found is not None
    return found


@contextmanager
def devices(ground: Ground, of: str, driver: str, memory: str) -> Iterator[None]:
    """Have the node publish a device of another kind, with a class for it."""
    made = {
        "deviceclasses": builders.class_of(of, driver),
        "resourceslices": builders.slice_of(ground.node.name, of, driver, memory),
    }
    for kind, item in made.items():
        ground.admin.post(group(names.RESOURCE_GROUP, kind), item)
    try:
        yield
    finally:
        for kind, item in made.items():
            ground.admin.delete(group(names.RESOURCE_GROUP, kind, item["metadata"]["name"]))


def claimed(ground: Ground, of: str, memory: str) -> tuple[Json, Json]:
    """Make a pod whose claim asks for 3000Mi of it; return it at create, and bound."""
    asking = {"deviceClassName": of, "capacity": {"requests": {memory: "3000Mi"}}}
    make(ground, "resourceclaims", builders.claim(of, {"name": "gpu", "exactly": asking}))
    made = create(ground, of, "hold 100Mi", builders.by_name("gpu", of))
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
    make(ground, "resourceclaimtemplates", builders.template("part", builders.request("2Gi")))
    with site.agent() as agent:
        create(ground, "owner", "hold 1Gi", builders.by_template("gpu", "part"))
        wait_until(is_placed(ground, "owner"))
        (claim,) = claims_in(ground)
        name = claim["metadata"]["name"]
        create(ground, "guest", "hold 5Gi", builders.by_name("gpu", name))
        wait_until_gone(ground, "guest", agent)

    assert not is_gone(ground, "owner")


def test_a_pod_that_was_made_before_its_claim_has_an_exact_plan_in_the_end(
    site: NodeSite, full_namespace: str
) -> None:
    """It was told nothing, and the plan says who holds it."""
    ground = site.ground(full_namespace)
    early = create(ground, "early", "hold 1Gi", builders.by_name("gpu", "late"))
    make(ground, "resourceclaims", builders.claim("late", builders.request("2Gi")))
    found = bound(ground, "early")

    assert plan_limit(early) is None
    assert 2 * GIB == plan_limit(found)
    assert "only its agent enforces it" in annotations_of(found)[names.SUMMARY]


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
