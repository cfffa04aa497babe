"""What is remembered of the watches, and how little."""

import tracemalloc
from typing import Any

from agent.cluster.filter import filter_pod
from agent.cluster.node_cards import report_of
from agent.cluster.pod_index import PodIndex, Sources
from agent.cluster.settings import ClusterSettings
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import MIB
from kube import JsonObject
from kube.informers import Store
from kube.informers.views import NamespaceView
from tests.support.builders import card, gpushare, node, node_cards, pod

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


def test_without_cards_nobody_has_a_limit() -> None:
    """Before the cards are known, pods are known without limits."""
    index = PodIndex(ClusterSettings(node="node-1"))
    known = index.pods(sources(raw(1), report=None), fresh=True)

    assert {} == known.by_uid["uid-1"].limits


def test_unknown_namespaces_are_not_fenced() -> None:
    """A pod whose namespace is not known yet has no mode."""
    index = PodIndex(ClusterSettings(node="node-1"))
    known = index.pods(sources(raw(1), namespaces={}), fresh=True)

    assert known.by_uid["uid-1"].mode is None


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
