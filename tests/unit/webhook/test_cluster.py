"""What is known of a cluster: nodes, slices, profiles, and the claims that are asked for."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gpufence import names
from gpufence.cards import Card
from gpufence.claim_requests import class_key
from gpufence.dialects import Units
from gpufence.need.applied import AppliedProfile
from gpufence.pods import PodClaim
from gpufence.quantity import GIB
from kube import JsonObject
from kube.informers import Interner, Store
from kube.informers.views import view_node
from tests.support import builders
from tests.support.builders import card, node
from webhook.claims import ClaimsFound, UnknownError, ask_claims
from webhook.cluster import ClusterView, NodeCache, keep_slice
from webhook.profiles import keep_profile, key_of

INTERNER = Interner()


def known_node(name: str, memory_mib: int = 15360, **metadata: Any) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.memory": str(memory_mib), "nvidia.com/gpu.count": "1"}
    return {
        "metadata": {"name": name, "labels": labels, **metadata},
        "status": {"allocatable": {"nvidia.com/gpu": "1"}},
    }


def kept(item: dict[str, Any]) -> tuple[str, Any]:
    return view_node(item, Units(), INTERNER, labelled=True)


class Clock:
    """Time that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_fleet_follows_changes_all_at_once() -> None:
    """Right after a fleet was made the next one waits, and then has every node that has joined."""
    clock = Clock()
    cache = NodeCache(clock)
    cache.nodes.apply("ADDED", kept(known_node("a")))
    before = cache.fleet()
    cache.nodes.apply("ADDED", kept(known_node("b")))
    at_once = cache.fleet()
    clock.now += 1

    assert before is at_once
    assert before.node("b") is None
    assert [cache.nodes.get(name) for name in "ab"] == [cache.fleet().node(name) for name in "ab"]


def test_a_heartbeat_makes_no_new_fleet() -> None:
    """A node that reports without news of its cards costs nothing."""
    clock = Clock()
    cache = NodeCache(clock)
    cache.nodes.replace([kept(known_node("a"))])
    fleet = cache.fleet()
    clock.now += 1
    cache.nodes.apply("MODIFIED", kept(known_node("a", resourceVersion="2")))

    assert fleet is cache.fleet()


def test_without_a_cluster_nobody_can_be_asked() -> None:
    """Questions about one pod or node have no answer there; a namespace has no words."""
    cluster = ClusterView()
    with pytest.raises(UnknownError, match="no cluster to ask for pod a/p"):
        asyncio.run(cluster.read_pod("a", "p"))
    with pytest.raises(UnknownError, match="no cluster to ask for node n"):
        asyncio.run(cluster.read_node("n"))

    assert {} == asyncio.run(cluster.read_namespace("a"))
    assert ({}, None, None) == (cluster.namespace("a"), cluster.node("n"), cluster.trouble())
    assert cluster.amounts("a", {}) is None


def profile(
    applied: tuple[tuple[str, str], ...] = (("main", "6Gi"),), **spec: str
) -> dict[str, Any]:
    rows = [{"name": name, "memory": amount} for name, amount in applied]
    return {
        "metadata": {"namespace": "a", "name": "deployment-web", "generation": 3},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "apply": "AtCreate", **spec},
        "status": {"applied": rows},
    }


def test_a_profile_that_is_applied_is_kept_with_its_amounts() -> None:
    """Never more than its owner's own maximum, which the status may not have followed yet."""
    kept_name, kept_profile = keep_profile(profile(), INTERNER)
    _, bounded = keep_profile(profile(max="5Gi"), INTERNER)

    assert ("a/deployment-web", AppliedProfile("deployment-web", 3, {"main": 6 * GIB})) == (
        kept_name,
        kept_profile,
    )
    assert AppliedProfile("deployment-web", 3, {"main": 5 * GIB}) == bounded


@pytest.mark.parametrize(
    "item",
    [profile(apply="Never"), profile(()), profile((("main", "lots"),)), profile(max="lots")],
)
def test_any_other_profile_is_not_held(item: dict[str, Any]) -> None:
    """It is shown only, has nothing to give, or nobody can read it."""
    store: Store[AppliedProfile] = Store()
    store.replace([keep_profile(profile(), INTERNER)])
    store.apply("MODIFIED", keep_profile(item, INTERNER))

    assert ("a/deployment-web", None) == keep_profile(item, INTERNER)
    assert {} == store.items


REPLICA_SET = {"controller": True, "kind": "ReplicaSet", "name": "web-5f", "apiVersion": "apps/v1"}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (
            {"ownerReferences": [REPLICA_SET], "labels": {"pod-template-hash": "5f"}},
            "deployment-web",
        ),
        ({"ownerReferences": [REPLICA_SET]}, "replicaset-web-5f"),
        ({"name": "alone"}, "pod-alone"),
        ({"ownerReferences": 7, "labels": []}, "pod-"),
    ],
)
def test_a_pods_profile_is_its_topmost_owners(metadata: dict[str, Any], expected: str) -> None:
    """As far as that is certain from the pod alone, and as agents call it."""
    assert f"a/{expected}" == key_of("a", {"metadata": metadata})


PRESENT = {names.GPU_PRESENT: "true"}
T4 = Card("GPU-0", 0, "Tesla T4", 15 * GIB, (7, 5))


def sliced(name: str = "node-1", driver: str = names.DRA_DRIVER) -> dict[str, Any]:
    device = {
        "name": "gpu-0",
        "attributes": {
            "uuid": {"string": "GPU-0"},
            "productName": {"string": "Tesla T4"},
            "cudaComputeCapability": {"version": "7.5.0"},
        },
        "capacity": {"memory": {"value": "15Gi"}},
    }
    spec = {"driver": driver, "nodeName": name, "pool": {"name": name}, "devices": [device]}
    return {"metadata": {"name": f"slice-of-{name}"}, "spec": spec}


def cache(*nodes: dict[str, Any], slices: tuple[dict[str, Any], ...] = ()) -> NodeCache:
    made = NodeCache(lambda: 0.0)
    interner = Interner()
    views = [view_node(item, Units(), interner, labelled=True) for item in nodes]
    made.nodes.replace(views)
    made.published.replace([keep_slice(item) for item in slices])
    return made


@pytest.mark.parametrize(
    ("nodes", "slices", "expected"),
    [
        ([node(labels=PRESENT, allocatable={})], [sliced()], T4),
        ([node(card(), allocatable={})], [sliced()], card()),
        ([node(labels=PRESENT, allocatable={})], [sliced(driver="nic.example.com")], None),
        ([node(allocatable={})], [sliced()], None),
        ([], [sliced()], None),
    ],
    ids=["label", "its agent's word", "another driver's slice", "no label", "no node"],
)
def test_a_node_has_the_cards_that_its_agent_or_its_slices_tell(
    nodes: list[dict[str, Any]], slices: list[dict[str, Any]], expected: Card | None
) -> None:
    """
    NVML knows the card better than whoever publishes it; a label alone says nothing of cards, and
    of most nodes of a cluster, which have no GPU, nothing is kept.
    """
    known = cache(*nodes, slices=tuple(slices))

    for found in (known.node("node-1"), known.fleet().node("node-1")):
        assert (expected and (expected,)) == (found and found.cards)


def test_a_node_knows_what_a_claim_without_an_amount_gets_there() -> None:
    """Whoever tells its cards: the least of what all its slices say."""
    shared = sliced()
    shared["spec"]["devices"][0]["allowMultipleAllocations"] = True
    shared["spec"]["devices"][0]["capacity"]["memory"]["requestPolicy"] = {"default": "1Gi"}
    own = card()
    found = [
        cache(node(own, allocatable={}), slices=(item,)).fleet().node("node-1")
        for item in (shared, sliced())
    ]

    assert [(GIB, (own,)), (None, (own,))] == [
        (item.units.claim_bytes, item.cards) for item in found if item is not None
    ]


CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
Json = dict[str, Any]


class Server:
    """Answers by path, and says of anything else that it is not there."""

    def __init__(self, answers: dict[str, JsonObject]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, where: Callable[..., str], *segments: str, **query: str) -> JsonObject:
        del query
        path = where(*segments)
        self.asked.append(path)
        if path not in self.answers:
            raise UnknownError("not-found", "it is not there")
        return self.answers[path]


def of_class(*names: str) -> Json:
    wanted = [
        {"name": f"r{place}", "exactly": {"deviceClassName": name}}
        for place, name in enumerate(names)
    ]
    return builders.claim("c", *wanted)


def ask(item: Json, **answers: Json) -> tuple[ClaimsFound, list[str]]:
    server = Server({**answers, f"{CLAIMS}/c": item})
    found = asyncio.run(ask_claims(server, "team-a", [PodClaim("gpu", "c")]))
    return found, server.asked


def test_the_classes_of_a_claim_are_found_with_it() -> None:
    """Or why they are not."""
    item, known = of_class("shared", "gone", builders.CLASS), builders.device_class()
    found, _ = ask(item, **{f"{CLASSES}/shared": known})

    assert {
        "gpu": item,
        class_key("shared"): known,
        class_key("gone"): "does not exist",
    } == found


def test_no_more_classes_are_asked_for_than_a_creator_can_wait_for() -> None:
    """Of the others a word says so."""
    found, asked = ask(of_class(*[f"class-{place}" for place in range(9)]))

    unreadable = {"spec": "nothing"}
    assert ({"gpu": unreadable}, [f"{CLAIMS}/c"]) == ask(unreadable)
    assert 8 == len([path for path in asked if path.startswith(CLASSES)])
    assert "is not read, as no other beyond 8" == found[class_key("class-8")]
