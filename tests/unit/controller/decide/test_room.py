"""How many more pods of a kind fit."""

from typing import Any

import pytest

from controller.decide import Places
from controller.model import NodeRoom, PodState
from gpufence import names
from gpufence.dialects import Units
from gpufence.quantity import GIB
from tests.support.builders import card
from tests.support.release import cluster, node_room, pod_state

GPU, GPUSHARE, VOLCANO = names.NVIDIA_GPU, names.GPUSHARE_MEMORY, names.VOLCANO_MEMORY
SHARED = {GPUSHARE: 32, names.GPUSHARE_COUNT: 2}
SLICED = Units(clients=4)


def count(template: PodState, *pods: PodState, node: NodeRoom | None = None) -> int:
    return Places(cluster(pods=pods, nodes=[node or node_room()])).room(template)


def more(**changes: Any) -> PodState:
    """Build one more replica, on no node yet."""
    return pod_state("more", **({"node": ""} | changes))


def gpushare(name: str, units: int, index: int | None = None, node: str = "node-1") -> PodState:
    """Build a pod of gpushare, on the card that the extender gave it."""
    annotations = {} if index is None else {"ALIYUN_COM_GPU_MEM_IDX": str(index)}
    return pod_state(name, requests={GPUSHARE: units}, annotations=annotations, node=node)


def test_every_card_that_is_left_has_room_for_one() -> None:
    """Of two cards none, one or both are taken."""
    assert 2 == count(more())
    assert 1 == count(more(), pod_state("a"))
    assert 0 == count(more(), pod_state("a"), pod_state("b"))


def test_every_gpu_resource_counts() -> None:
    """A GPU resource that no node offers fits nowhere, nor does a pod beyond the node's number."""
    node = node_room(offered={GPU: 8, "pods": 3})

    assert 3 == count(more(requests={GPU: 1}), node=node)
    assert 0 == count(more(requests={GPU: 1, names.VOLCANO_MEMORY: 1}), node=node)
    assert 8 == count(more(requests={GPU: 1, names.VOLCANO_MEMORY: 0}), node=node_room(cards=8))


def test_pods_that_end_still_take_their_place() -> None:
    """A replica that were to come now would be Pending until they are gone."""
    assert 1 == count(more(), pod_state("a", terminating=True))


def test_pods_without_a_gpu_take_room_too() -> None:
    """What runs beside takes a place among the node's pods."""
    beside = pod_state("beside", requests={}, gpu=None)

    assert 0 == count(more(), beside, node=node_room(offered={GPU: 2, "pods": 1}))
    assert 109 == count(more(requests={}, gpu=None), pod_state("a"))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (node_room(unschedulable=True), 0),
        (node_room(taints=[{"key": "gpu", "effect": "NoSchedule"}]), 0),
        (node_room(labels={"zone": "b"}), 0),
        (node_room(labels={"zone": "a"}), 2),
    ],
)
def test_a_node_must_take_the_pod(node: NodeRoom, expected: int) -> None:
    """Cordons, taints and selectors keep it away."""
    assert expected == count(more(spec={"nodeSelector": {"zone": "a"}}), node=node)


def test_an_affinity_nobody_can_read_allows_no_node() -> None:
    """What cannot be read is not guessed at."""
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": 3}}
    }

    assert 0 == count(more(spec={"affinity": affinity}))


def test_gpushare_counts_by_card() -> None:
    """What is left on two cards together is of no use to a pod that gets one of them."""
    node = node_room(offered=SHARED)
    on_both = (gpushare("a", 10, 0), gpushare("b", 10, 1))

    assert 4 == count(gpushare("more", 8, node=""), node=node)
    assert 0 == count(gpushare("more", 8, node=""), *on_both, node=node)
    assert 2 == count(gpushare("more", 6, node=""), *on_both, node=node)
    assert 2 == count(gpushare("more", 8, node=""), gpushare("a", 10, 0), node=node)


def test_a_card_nobody_knows_may_be_any() -> None:
    """
    A pod on the node of which nobody has noted the card takes room on each, as does one whose note
    names a card that is not there.
    """
    node = node_room(offered=SHARED)

    assert 0 == count(gpushare("more", 8, node=""), gpushare("a", 10), node=node)
    assert 0 == count(gpushare("more", 8, node=""), gpushare("a", 10, 7), node=node)


def test_cards_are_counted_where_nobody_says_how_many() -> None:
    """Without a count of cards the node's own list tells, or else it is one."""
    template = gpushare("more", 12, node="")

    assert 2 == count(template, node=node_room(offered={GPUSHARE: 32}))
    assert 2 == count(template, node=node_room(own_cards=(), offered={GPUSHARE: 32}))
    assert 3 == count(template, node=node_room(own_cards=(), offered={GPUSHARE: 36}))


def test_volcanos_memory_counts_by_card() -> None:
    """Volcano puts a pod on one card, too."""
    node = node_room(offered={VOLCANO: 32768, names.VOLCANO_NUMBER: 2})
    there = pod_state("a", requests={VOLCANO: 10240}, annotations={"volcano.sh/gpu-index": "0"})

    assert 1 == count(more(requests={VOLCANO: 16384}), there, node=node)


def test_memory_that_no_scheduler_counts_is_counted() -> None:
    """
    Of time-sliced cards of 16 GiB each takes two pods that may use 6 GiB, however many clients the
    node offers.
    """
    node = node_room(units=SLICED, offered={GPU: 8})
    template = more(annotations={names.MEMORY: "6Gi"})

    assert 4 == count(template, node=node)
    assert 3 == count(template, pod_state("a", annotations={names.MEMORY: "4Gi"}), node=node)
    assert 2 == count(template, pod_state("a", annotations={names.MEMORY: "8Gi"}), node=node)


def test_what_has_no_limit_counts_as_its_share() -> None:
    """
    A neighbour without an amount is taken for what its node's settings imply, and a template
    without one for what the scheduler counts.
    """
    node = node_room(units=SLICED, offered={GPU: 8})

    assert 3 == count(more(annotations={names.MEMORY: "6Gi"}), pod_state("a"), node=node)
    assert 7 == count(more(), pod_state("a"), node=node)


def test_neighbours_that_use_no_card_are_no_hindrance() -> None:
    """Pods without any GPU, and those that declare nothing, hold none of the cards' memory."""
    node = node_room(units=SLICED, offered={GPU: 8})
    others = (pod_state("a", gpu=None), pod_state("b", requests={}))

    assert 4 == count(more(annotations={names.MEMORY: "6Gi"}), *others, node=node)


def test_cards_that_nobody_knows_bound_nothing() -> None:
    """Where nothing tells the size of a node's cards only the scheduler's sums count."""
    node = node_room(units=SLICED, own_cards=(), offered={GPU: 8})

    assert 8 == count(more(annotations={names.MEMORY: "6Gi"}), node=node)


def test_hamis_memory_counts_though_no_node_offers_it() -> None:
    """
    HAMi's scheduler alone counts nvidia.com/gpumem; here the cards' memory does, and a node without
    its vGPUs takes none.
    """
    asked = {GPU: 1, names.HAMI_MEMORY: 6144}
    node = node_room(offered={GPU: 20})

    assert 4 == count(more(requests=asked), node=node)
    assert 3 == count(more(requests=asked), pod_state("a", requests=asked), node=node)
    assert 0 == count(more(requests=asked), node=node_room(offered={GPUSHARE: 15}))


def test_a_pod_of_two_cards_takes_two() -> None:
    """The memory of several cards is needed at once."""
    template = more(requests={GPU: 2, names.HAMI_MEMORY: 6144})

    assert 2 == count(template, node=node_room(offered={GPU: 20}))


def test_kais_shares_fit_on_whole_cards() -> None:
    """What is left of cards that others share is not known, so that only free ones count."""
    share = {"requests": {}, "annotations": {"gpu-fraction": "0.5"}}
    reservation = pod_state("reservation")

    assert 4 == count(more(**share))
    assert 2 == count(more(**share), reservation)
    assert 2 == count(more(requests={}, annotations={"gpu-memory": "9000"}))
    assert 0 == count(more(**share), node=node_room(offered={"cpu": 1000}))


def test_instances_are_counted_by_the_scheduler() -> None:
    """A MIG instance is nobody else's."""
    resource = "nvidia.com/mig-1g.5gb"
    cards = tuple(
        card(index, memory_bytes=5 * GIB, parent="GPU-0", profile="1g.5gb") for index in range(3)
    )
    node = node_room(own_cards=cards, offered={resource: 3})

    assert 2 == count(
        more(requests={resource: 1}), pod_state("a", requests={resource: 1}), node=node
    )
