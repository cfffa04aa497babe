"""Nodes whose cards are known by their ResourceSlices alone."""

from typing import Any

from gpufence import names
from gpufence.cards import Card
from gpufence.dialects import Units
from gpufence.quantity import GIB
from kube.informers import Interner
from kube.informers.views import view_node
from tests.support.builders import card, node
from webhook.cluster import NodeCache, keep_slice

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


def test_a_node_with_a_label_alone_has_the_cards_of_its_slices() -> None:
    """A pod may meet them, and a binding finds the node."""
    known = cache(node(labels=PRESENT, allocatable={}), slices=(sliced(),))
    found = known.node("node-1")

    assert found is not None
    assert (T4,) == found.cards
    assert "node-1" == getattr(known.fleet().node("node-1"), "name", "")


def test_without_slices_such_a_node_is_no_gpu_node() -> None:
    """A label alone says nothing of cards, and another driver's slice neither."""
    known = cache(node(labels=PRESENT, allocatable={}), slices=(sliced(driver="nic.example.com"),))

    assert known.node("node-1") is None
    assert known.fleet().node("node-1") is None


def test_what_a_nodes_agent_has_written_counts_before_its_slices() -> None:
    """NVML knows the card better than whoever publishes it."""
    own = card()
    found = cache(node(own, allocatable={}), slices=(sliced(),)).node("node-1")

    assert found is not None
    assert (own,) == found.cards


def test_a_node_without_label_and_cards_is_forgotten() -> None:
    """Most nodes of a cluster have no GPU."""
    assert cache(node(allocatable={}), slices=(sliced(),)).node("node-1") is None
    assert cache(slices=(sliced(),)).node("node-1") is None


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
