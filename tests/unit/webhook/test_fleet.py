"""All GPU nodes of a cluster, and the cards a pod might meet among them."""

from typing import Any

import pytest

from gpufence import names
from gpufence.pods import read_pod
from gpufence.quantity import GIB
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.observing import quiet_seconds
from tests.support.rewriting import T4, gpu_node
from webhook.fleet import Fleet

MOST_SECONDS = 0.02
SIZES = {"a": 16 * GIB, "b": 24 * GIB, "c": 80 * GIB}
LABELS = {"a": {"pool": "x", "level": "3"}, "b": {"pool": "y", "level": "7"}, "c": {"pool": "z"}}
NODES = [
    gpu_node(node(card(memory_bytes=size), name=name, labels=LABELS[name]))
    for name, size in SIZES.items()
]
FLEET = Fleet(NODES)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """Build the affinity that requires one of these terms."""
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {key: {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "met"),
    [
        ({}, "abc"),
        ({"nodeName": "c"}, "c"),
        ({"nodeName": "nowhere"}, ""),
        ({"nodeSelector": {"pool": "x"}}, "a"),
        ({"nodeSelector": {"pool": "z", "level": "3"}}, ""),
        ({"nodeSelector": {"unknown": "x"}}, ""),
        *(
            ({"affinity": required({"matchExpressions": [item]})}, met)
            for item, met in (
                (expression("pool", "In", "x", "z"), "ac"),
                (expression("pool", "NotIn", "x", "y"), "c"),
                (expression("level", "NotIn", "3"), "bc"),
                (expression("level", "Exists"), "ab"),
                (expression("level", "DoesNotExist"), "c"),
                (expression("level", "Gt", "5"), "b"),
                (expression("level", "Lt", "5"), "a"),
                (expression("level", "Sideways", "5"), ""),
            )
        ),
        ({"affinity": required({"matchFields": [expression("metadata.name", "In", "c")]})}, "c"),
        (
            {"affinity": required({"matchFields": [expression("metadata.name", "NotIn", "c")]})},
            "ab",
        ),
        ({"affinity": required({"matchFields": [expression("spec.other", "In", "c")]})}, ""),
        ({"affinity": required({})}, ""),
        ({"affinity": required()}, ""),
        (
            {
                "affinity": required(
                    {"matchExpressions": [expression("pool", "In", "x")]},
                    {"matchExpressions": [expression("pool", "In", "z")]},
                )
            },
            "ac",
        ),
    ],
)
def test_a_pod_meets_the_cards_of_the_nodes_that_it_allows(spec: dict[str, Any], met: str) -> None:
    """
    Selectors and required affinity decide; where no node is left, the default card stands alone.
    """
    candidates = FLEET.candidates(read_pod(pod(gpushare(), **spec)), T4)

    sizes: list[int | None] = [SIZES[name] for name in met] or [T4.memory_bytes]
    assert sizes == [item.memory_bytes for item in candidates]


def test_equal_nodes_count_once() -> None:
    """A thousand equal nodes are one card to reckon with."""
    fleet = Fleet([gpu_node(node(card(), name=f"n-{number}")) for number in range(1000)])

    assert 1 == len(fleet.candidates(read_pod(pod(gpushare())), T4))


def test_nodes_without_the_resource_are_no_candidates() -> None:
    """A node that does not offer what the pod asks for adds no card."""
    asked = read_pod(pod(container(**{names.VOLCANO_MEMORY: "3000"})))

    assert (T4,) == FLEET.candidates(asked, T4)


def test_a_node_is_found_by_name() -> None:
    """A node can be asked for by its name."""
    assert NODES[0] is FLEET.node("a")
    assert FLEET.node("nowhere") is None


def test_what_is_remembered_has_an_end() -> None:
    """Pods may ask for any label and any card; answers stay right when no more are kept."""
    fleet = Fleet(NODES)
    for number in range(1100):
        index = {names.GPUSHARE_CARD_INDEX: str(number)}
        nowhere = read_pod(pod(gpushare(), nodeSelector={f"key-{number % 300}": "x"}))
        assigned = read_pod(pod(gpushare(), annotations=index))

        assert (T4,) == fleet.candidates(nowhere, T4)
        assert Fleet(NODES).candidates(assigned, T4) == fleet.candidates(assigned, T4)


@pytest.mark.parametrize(
    "items",
    [
        [expression(f"unknown{n}", "Exists") for n in range(120)],
        [expression("number", "Gt", str(n)) for n in range(120)],
        [expression("number", "In", *map(str, range(n, n + 500))) for n in range(60)],
    ],
    ids=["keys of no node", "numbers", "values"],
)
def test_an_affinity_costs_a_large_cluster_little(items: list[dict[str, Any]]) -> None:
    """Whatever a pod requires of 5,000 nodes is looked up, or is too much to be looked at."""
    fleet = Fleet(
        gpu_node(node(card(), name=f"n{n}", labels={"number": str(n)})) for n in range(5000)
    )
    asked = read_pod(
        pod(gpushare(), affinity=required(*({"matchExpressions": [e]} for e in items)))
    )
    fleet.candidates(asked, T4)
    seconds = quiet_seconds(
        lambda _: fleet.candidates(asked, T4), lambda: None, enough=MOST_SECONDS
    )

    assert seconds < MOST_SECONDS


def test_no_more_labels_are_indexed_than_promised() -> None:
    """Of a node with hundreds of labels each is looked up, kept or not."""
    labels = {f"key-{number}": "x" for number in range(300)}
    fleet = Fleet([gpu_node(node(card(memory_bytes=80 * GIB), labels=labels))])
    cards = {
        fleet.candidates(read_pod(pod(gpushare(), nodeSelector={key: "x"})), T4) for key in labels
    }

    assert [[80 * GIB]] == [[each.memory_bytes for each in found] for found in cards]
