"""What the agent knows of its pods and its Node, made anew only where something changed."""

import tracemalloc
from typing import Any

import pytest

from agent.cluster.cluster import PodIndex, Sources
from agent.cluster.filter import filter_pod
from agent.cluster.node_cards import differ, report_of
from agent.cluster.settings import ClusterSettings
from gpufence import names
from gpufence.cards import NodeCards, write_cards
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.nodes import read_node
from gpufence.quantity import GIB, MIB
from kube import JsonObject
from kube.informers import Store
from kube.informers.views import NamespaceView
from tests.support.builders import T4_BYTES, card, gpushare, node, node_cards, pod

FENCED = NamespaceView({names.MODE: "evict"}, {})
REPORT = report_of(node_cards(card(0)), node(), Units())
PODS = 20
CHANGES = 400


def raw(number: int, **status: Any) -> JsonObject:
    made = pod(gpushare())
    made["metadata"] |= {"uid": f"uid-{number}", "name": f"p-{number}", "managedFields": ["x"] * 99}
    made["status"] = {"phase": "Running", **status}
    return made


def sources(*pods: JsonObject, **more: Any) -> Sources:
    said: dict[str, Any] = {
        "pods": dict(filter_pod(item) for item in pods),
        "namespaces": {"team-a": FENCED},
        "highest": Mode.EVICT,
        "report": REPORT,
    }
    return Sources(**said | more)


def test_the_same_in_the_same_out() -> None:
    """The same sources make the same pods, the very same one."""
    index, given = PodIndex(ClusterSettings(node="node-1")), sources(raw(1))
    first = index.pods(given, fresh=True)

    assert first is index.pods(given, fresh=True)
    assert not index.pods(given, fresh=False).fresh
    assert first == index.pods(given, fresh=True)


def test_only_what_changed_is_read_again() -> None:
    """A pod that has not changed stays the very same value while others come and go."""
    index, one = PodIndex(ClusterSettings(node="node-1")), sources(raw(1))
    before = index.pods(one, fresh=True)
    more = one._replace(pods={**one.pods, **dict([filter_pod(raw(2))])})
    after = index.pods(more, fresh=True)

    assert {"uid-1", "uid-2"} == after.by_uid.keys()
    assert before.by_uid["uid-1"] is after.by_uid["uid-1"]


def test_what_is_not_known_fences_no_pod() -> None:
    """Before the cards are known there are no limits, and before its namespace is no mode."""
    known = [
        PodIndex(ClusterSettings(node="node-1")).pods(each, fresh=True).by_uid["uid-1"]
        for each in (sources(raw(1), report=None), sources(raw(1), namespaces={}))
    ]

    assert {} == known[0].limits
    assert known[1].mode is None


def test_exempt_namespaces() -> None:
    """The operator's exempt namespaces reach the pods."""
    index = PodIndex(ClusterSettings(node="node-1", exempt_namespaces=frozenset({"team-a"})))
    known = index.pods(sources(raw(1)), fresh=True)
    context = index.context(NamespaceView({}, {}), Mode.CAP, None)

    assert known.by_uid["uid-1"].exempt
    assert (Mode.CAP, frozenset({"team-a"})) == (context.highest, context.exempt_namespaces)


def test_memory_is_flat() -> None:
    """Pods that come, change and go leave nothing behind."""
    index, cache = PodIndex(ClusterSettings(node="node-1")), Store[Any]()

    def live(first: int, last: int) -> None:
        for number in range(first, last):
            cache.apply("ADDED", filter_pod(raw(number)))
            cache.apply("MODIFIED", filter_pod(raw(number, conditions=[number])))
            cache.apply("DELETED", filter_pod(raw(number - PODS)))
            if number % 10 == 0:
                index.pods(sources(pods=cache.items), fresh=True)

    live(0, 4 * PODS)
    tracemalloc.start()
    live(4 * PODS, 5 * PODS)
    before = tracemalloc.get_traced_memory()[0]
    live(5 * PODS, 5 * PODS + CHANGES)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert PODS == len(cache.items)
    assert MIB > grown


SEEN = node_cards(card(0), card(1))
T4_MIB = T4_BYTES // MIB
DOWN: tuple[dict[str, str], ...] = ({}, {"whole": "2"}, {"memory": "0"}, {"memory": "none"})


def offering(said: NodeCards | None = None, /, **offered: str) -> dict[str, object]:
    resources = {
        "memory": names.GPUSHARE_MEMORY,
        "count": names.GPUSHARE_COUNT,
        "volcano": names.VOLCANO_MEMORY,
        "whole": names.NVIDIA_GPU,
    }
    return node(
        allocatable={resources[key]: text for key, text in offered.items()},
        annotations={} if said is None else {names.CARDS: write_cards(said)},
    )


WORD = Units(gpushare_bytes=MIB, volcano_factor=7, clients=3)
SAID = node_cards(*SEEN.cards, units={names.GPUSHARE_MEMORY: "MiB"}, factor=10)
OTHERS = node_cards(card(9), units={names.GPUSHARE_MEMORY: "MiB"}, factor=10)


@pytest.mark.parametrize(
    ("item", "given", "unit", "factor", "units"),
    [
        (offering(memory="30", count="2"), Units(), "GiB", None, Units(gpushare_bytes=GIB)),
        (
            offering(memory=str(2 * T4_MIB), count="2"),
            Units(),
            "MiB",
            None,
            Units(gpushare_bytes=MIB),
        ),
        (offering(memory="7", count="2"), Units(), None, None, Units(gpushare_bytes=None)),
        (
            offering(memory="30"),
            Units(gpushare_bytes=MIB),
            "GiB",
            None,
            Units(gpushare_bytes=GIB),
        ),
        (
            offering(volcano=str(2 * T4_MIB // 10)),
            Units(),
            None,
            10,
            Units(volcano_factor=10),
        ),
        (offering(whole="2"), WORD, None, None, WORD),
        (offering(), WORD, None, None, WORD),
        ({}, WORD, None, None, WORD),
        *(
            (offering(SAID, **offered), Units(), "MiB", 10, Units(MIB, volcano_factor=10))
            for offered in DOWN
        ),
        (offering(OTHERS), Units(), None, None, Units()),
    ],
    ids=[
        *("GiB", "MiB", "fits neither", "no count: all cards share", "Volcano's factor"),
        *("the operator's word", "the same, nothing offered", "the same, no node"),
        *("a plugin that is down", "whole cards", "none", "no number", "said of other cards"),
    ],
)
def test_what_the_resources_count_in(
    item: dict[str, object], given: Units, unit: str | None, factor: int | None, units: Units
) -> None:
    """
    What the node offers over what its cards hold, what it has said of the same cards while it does
    not offer it, or the operator's word where it has said nothing, ever.
    """
    report = report_of(SEEN, item, given)

    assert units == report.units
    assert unit == dict(report.cards.units).get(names.GPUSHARE_MEMORY)
    assert (factor, SEEN.cards) == (report.cards.factor, report.cards.cards)


def test_the_webhook_reads_the_same() -> None:
    """Whoever reads the annotation comes to the units that the agent works with."""
    report = report_of(SEEN, offering(memory=str(2 * T4_MIB), count="2"), Units())
    said = offering(report.cards, memory=str(2 * T4_MIB), count="2")
    read = read_node(said, Units())

    assert read is not None
    assert (report.units, report.cards.cards) == (read.units, read.cards)


def test_difference() -> None:
    """Only the time of the observation makes no difference."""
    later = NodeCards(SEEN.driver, "2027-01-02T03:04:05Z", SEEN.cards)

    assert not differ(SEEN, later)
    assert differ(None, SEEN)
    assert differ(SEEN, node_cards(card(0)))
