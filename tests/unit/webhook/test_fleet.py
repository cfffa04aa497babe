"""
All GPU nodes of a cluster, and the cards a pod might meet among them.
"""

from typing import Any

import pytest

from gpufence import names
from gpufence.candidates import candidate_cards, candidate_nodes
from gpufence.pods import read_pod
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import T4, gpu_node
from webhook.fleet import Fleet

LARGE = card(memory_bytes=80 * 2**30, model="H100", compute_capability=(9, 0))
NODES = [
    gpu_node(node(card(), name="a", labels={"pool": "x", "level": "3"})),
    gpu_node(node(card(), name="b", labels={"pool": "y", "level": "7"})),
    gpu_node(node(LARGE, name="c", labels={"pool": "z"})),
]
FLEET = Fleet(NODES)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """
    Build the affinity that requires one of these terms.
    """
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {key: {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeName": "c"},
        {"nodeName": "nowhere"},
        {"nodeSelector": {"pool": "x"}},
        {"nodeSelector": {"pool": "z", "level": "3"}},
        {"nodeSelector": {"unknown": "x"}},
        *(
            {"affinity": required({"matchExpressions": [item]})}
            for item in (
                expression("pool", "In", "x", "z"),
                expression("pool", "NotIn", "x", "y"),
                expression("level", "NotIn", "3"),
                expression("level", "Exists"),
                expression("level", "DoesNotExist"),
                expression("level", "Gt", "5"),
                expression("level", "Lt", "5"),
                expression("level", "Sideways", "5"),
            )
        ),
        {"affinity": required({"matchFields": [expression("metadata.name", "In", "c")]})},
        {"affinity": required({"matchFields": [expression("metadata.name", "NotIn", "c")]})},
        {"affinity": required({"matchFields": [expression("spec.other", "In", "c")]})},
        {"affinity": required({})},
        {"affinity": required()},
        {
            "affinity": required(
                {"matchExpressions": [expression("pool", "In", "x")]},
                {"matchExpressions": [expression("pool", "In", "z")]},
            )
        },
    ],
)
def test_the_fleet_answers_as_one_would_node_by_node(spec: dict[str, Any]) -> None:
    """
    Bit sets and indexes lead to the very cards that asking every node leads to.
    """
    asked = read_pod(pod(gpushare(), **spec))
    expected = candidate_cards(asked, candidate_nodes(asked, NODES), T4)

    assert set(expected) == set(FLEET.candidates(asked, T4))


def test_equal_nodes_count_once() -> None:
    """
    A thousand equal nodes are one card to reckon with.
    """
    fleet = Fleet([gpu_node(node(card(), name=f"n-{number}")) for number in range(1000)])

    assert 1 == len(fleet.candidates(read_pod(pod(gpushare())), T4))


def test_nodes_without_the_resource_are_no_candidates() -> None:
    """
    A node that does not offer what the pod asks for adds no card.
    """
    asked = read_pod(pod(container(**{names.VOLCANO_MEMORY: "3000"})))

    assert (T4,) == FLEET.candidates(asked, T4)


def test_a_node_is_found_by_name() -> None:
    """
    A node can be asked for by its name.
    """
    assert NODES[0] is FLEET.node("a")
    assert FLEET.node("nowhere") is None


def test_what_is_remembered_has_an_end() -> None:
    """
    Pods may ask for any label and any card; answers stay right when no more are kept.
    """
    fleet = Fleet(NODES)
    for number in range(1100):
        index = {names.GPUSHARE_CARD_INDEX: str(number)}
        nowhere = read_pod(pod(gpushare(), nodeSelector={f"key-{number % 300}": "x"}))
        assigned = read_pod(pod(gpushare(), annotations=index))

        assert (T4,) == fleet.candidates(nowhere, T4)
        assert Fleet(NODES).candidates(assigned, T4) == fleet.candidates(assigned, T4)
