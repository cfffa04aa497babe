"""All GPU nodes of a cluster, and the cards a pod might meet among them."""

from typing import Any

import pytest

from gpufence import names
from gpufence.errors import InvalidError
from gpufence.nodes import allows
from gpufence.pods import Pod, read_pod
from gpufence.quantity import GIB
from tests.support.builders import card, gpushare, node, pod
from tests.support.observing import quiet_seconds
from tests.support.rewriting import T4, gpu_node, rewritten
from webhook.fleet import Fleet

MOST_SECONDS = 0.02
SIZES = {"a": 16 * GIB, "b": 24 * GIB, "c": 80 * GIB}
LABELS = {
    "a": {"pool": "x", "level": "3"},
    "b": {"pool": "y", "level": "7"},
    "c": {"pool": "z", "empty": ""},
}
NODES = [
    gpu_node(node(card(memory_bytes=size), name=name, labels=LABELS[name]))
    for name, size in SIZES.items()
]
FLEET = Fleet(NODES)
NAMES = {size: name for name, size in SIZES.items()}


def required(*terms: Any) -> dict[str, Any]:
    """Build the affinity that requires one of these terms."""
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {key: {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def cards_met(asked: Pod) -> str:
    """Name the nodes whose cards are candidates, each of another size."""
    found = FLEET.candidates(asked, T4)
    return "" if found == (T4,) else "".join(NAMES[item.memory_bytes or 0] for item in found)


def by_label(*items: object) -> dict[str, object]:
    return {"matchExpressions": list(items)}


def by_name(operator: str, *values: str, key: str = "metadata.name") -> dict[str, object]:
    return {"matchFields": [expression(key, operator, *values)]}


def nodes_allowed(asked: Pod) -> str:
    """Name the nodes that a pod allows, each looked at by itself."""
    return "".join(name for name in SIZES if allows(asked, name, LABELS[name]))


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}


@pytest.mark.parametrize(
    ("spec", "met"),
    [
        ({}, "abc"),
        ({"affinity": {"nodeAffinity": PREFERRED}}, "abc"),
        ({"nodeName": "c"}, "c"),
        ({"nodeName": "c", "nodeSelector": {"pool": "x"}}, "c"),
        ({"nodeName": "nowhere"}, ""),
        ({"nodeSelector": {"pool": "x"}}, "a"),
        ({"nodeSelector": {"pool": "x", "level": "3"}}, "a"),
        ({"nodeSelector": {"pool": "z", "level": "3"}}, ""),
        ({"nodeSelector": {"empty": ""}}, "c"),
        ({"nodeSelector": {"unknown": ""}}, ""),
    ],
)
def test_a_pod_meets_the_cards_of_the_nodes_that_it_selects(spec: dict[str, Any], met: str) -> None:
    """Every label of a selector must match; where no node is left, the default stands alone."""
    asked = read_pod(pod(gpushare(), **spec))

    assert met == cards_met(asked)
    assert asked.node_name or met == nodes_allowed(asked)


@pytest.mark.parametrize(
    ("terms", "met"),
    [
        *(
            ([by_label(expression(key, operator, *values))], met)
            for key, operator, *values, met in (
                ("pool", "In", "x", "z", "ac"),
                ("unknown", "In", "x", ""),
                ("pool", "NotIn", "x", "y", "c"),
                ("level", "NotIn", "3", "bc"),
                ("level", "Exists", "ab"),
                ("level", "DoesNotExist", "c"),
                ("level", "Gt", "3", "b"),
                ("level", "Gt", "-5", "ab"),
                ("level", "Gt", "00000000000000000000003", "b"),
                ("level", "Lt", "7", "a"),
                ("level", "Lt", "+7", "a"),
                ("level", "Lt", "9223372036854775807", "ab"),
                ("level", "Lt", "9223372036854775808", ""),
                ("level", "Gt", "2.5", ""),
                ("level", "Gt", "2", "1", ""),
                ("level", "Gt", ""),
                ("pool", "Gt", "1", ""),
                ("pool", "Lt", "1", ""),
                ("unknown", "Lt", "3", ""),
                ("level", "Sideways", "5", ""),
            )
        ),
        ([by_name("In", "c")], "c"),
        ([by_name("NotIn", "c")], "ab"),
        ([by_name("In", "c", key="spec.other")], ""),
        ([], ""),
        ([{}], ""),
        ([{}, by_label(expression("level", "Exists"))], "ab"),
        ([by_label(expression("pool", "In", each)) for each in "xz"], "ac"),
        ([by_label(expression("pool", "In", "x"), expression("level", "In", "7"))], ""),
        ([by_name("In", "a") | by_label(expression("pool", "In", "y"))], ""),
        ([by_name("In", "b") | by_label(expression("pool", "In", "x"))], ""),
    ],
    ids=str,
)
def test_a_term_is_read_as_the_scheduler_does(terms: list[Any], met: str) -> None:
    """
    Terms are alternatives, their requirements are not; what cannot be compared is neither less nor
    more, and an empty term matches no node. What is indexed answers as each node by itself.
    """
    asked = read_pod(pod(gpushare(), affinity=required(*terms)))

    assert met == cards_met(asked)
    assert met == nodes_allowed(asked)


def test_a_term_of_the_wrong_shape_is_refused() -> None:
    """What is no term raises instead of matching."""
    with pytest.raises(InvalidError, match="is not an object"):
        cards_met(read_pod(pod(gpushare(), affinity=required("zone=a"))))


def test_a_selector_and_a_bound_hold_for_one_node_too() -> None:
    """A selector beside terms is no alternative, and more terms than are read allow nothing."""
    term = by_label(expression("pool", "In", "x"))
    beside = pod(gpushare(), affinity=required(term), nodeSelector={"level": "7"})

    assert not allows(read_pod(beside), "a", LABELS["a"])
    assert not allows(read_pod(pod(affinity=required(*[term] * 129))), "a", LABELS["a"])


def test_equal_nodes_count_once() -> None:
    """A thousand equal nodes are one card to reckon with."""
    fleet = Fleet([gpu_node(node(card(), name=f"n-{number}")) for number in range(1000)])

    assert 1 == len(fleet.candidates(read_pod(pod(gpushare())), T4))


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


def test_of_very_many_sizes_the_ends_count() -> None:
    """A pod is told by 200 kinds of cards what the smallest and the largest of each would tell."""
    made = [
        gpu_node(
            node(card(memory_bytes=(16 + n) * GIB, compute_capability=each), name=f"{each}{n}")
        )
        for each in ((8, 0), (9, 0))
        for n in range(100)
    ]
    asked = pod(gpushare(), annotations={names.BURST: "40Gi"})
    found = Fleet(made).candidates(read_pod(asked), T4)
    ends = [made[at] for at in (0, 99, 100, 199)]
    told = [rewritten(asked, fleet=Fleet(nodes))[1].plan for nodes in (made, ends)]

    assert len(found) <= 2 * 17
    assert {each.cards[0].memory_bytes for each in ends} <= {each.memory_bytes for each in found}
    assert told[0] == told[1]


def test_no_more_labels_are_indexed_than_promised() -> None:
    """Of a node with hundreds of labels each is looked up, kept or not."""
    labels = {f"key-{number}": "x" for number in range(300)}
    fleet = Fleet([gpu_node(node(card(memory_bytes=80 * GIB), labels=labels))])
    cards = {
        fleet.candidates(read_pod(pod(gpushare(), nodeSelector={key: "x"})), T4) for key in labels
    }

    assert [[80 * GIB]] == [[each.memory_bytes for each in found] for found in cards]
