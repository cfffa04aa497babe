"""What is remembered of nodes and profiles."""

import asyncio
from typing import Any

import pytest

from gpufence.dialects import Units
from gpufence.need.applied import AppliedProfile
from gpufence.quantity import GIB
from kube.informers import Interner, Store
from kube.informers.views import view_node
from webhook.claims import UnknownError
from webhook.cluster import NodeCache, WithoutCluster, keep_profile, profile_of

INTERNER = Interner()


def node(name: str, memory_mib: int = 15360, **metadata: Any) -> dict[str, Any]:
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


def test_the_fleet_follows_a_change() -> None:
    """A node that joins is in the next fleet."""
    clock = Clock()
    cache = NodeCache(clock)
    before = cache.fleet()
    cache.nodes.apply("ADDED", kept(node("a")))
    clock.now += 1

    assert before.node("a") is None
    assert cache.fleet().node("a") == cache.nodes.get("a")


def test_a_heartbeat_makes_no_new_fleet() -> None:
    """A node that reports without news of its cards costs nothing."""
    clock = Clock()
    cache = NodeCache(clock)
    cache.nodes.replace([kept(node("a"))])
    fleet = cache.fleet()
    clock.now += 1
    cache.nodes.apply("MODIFIED", kept(node("a", resourceVersion="2")))

    assert fleet is cache.fleet()


def test_many_changes_make_few_fleets() -> None:
    """Right after a fleet was made the next one waits, and then takes all changes at once."""
    clock = Clock()
    cache = NodeCache(clock)
    cache.nodes.apply("ADDED", kept(node("a")))
    first = cache.fleet()
    cache.nodes.apply("ADDED", kept(node("b")))
    at_once = cache.fleet()
    clock.now += 1
    later = cache.fleet()

    assert first is at_once
    assert later.node("b") is not None


def test_without_a_cluster_nobody_can_be_asked() -> None:
    """Questions about one pod or node have no answer there; a namespace has no words."""
    cluster = WithoutCluster()
    with pytest.raises(UnknownError, match="no cluster to ask for pod a/p"):
        asyncio.run(cluster.read_pod("a", "p"))
    with pytest.raises(UnknownError, match="no cluster to ask for node n"):
        asyncio.run(cluster.read_node("n"))

    assert {} == asyncio.run(cluster.read_namespace("a"))


def test_without_a_cluster_every_namespace_is_silent() -> None:
    """Development needs no namespaces and no nodes."""
    cluster = WithoutCluster()

    assert ({}, None, None) == (cluster.namespace("a"), cluster.node("n"), cluster.trouble())
    assert cluster.profile("a", {}) is None


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
    assert f"a/{expected}" == profile_of("a", {"metadata": metadata})
