"""What the page is told: the words of `top`, and numbers beside them."""

from typing import Any

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.pod_lines import pod_lines, verdict_on
from kubectl_gpufence.verbs.dashboard.model import (
    MOST_EVENTS,
    PageEvent,
    page_model,
    read_page_event,
)
from tests.support.plugin import agent, card_row, cluster, pod_row, seen_pod, snapshot, use_row
from tests.support.plugin_cases import odd, odd_cards, silent, stale, typical

EVENT = {
    "metadata": {"creationTimestamp": "2026-01-02T03:00:00Z"},
    "involvedObject": {"kind": "Pod", "namespace": "team-a", "name": "trainer-0"},
    "reason": "GPUMemoryLimitExceeded",
    "message": "holds too much",
    "type": "Warning",
    "count": 3,
    "lastTimestamp": "2026-01-02T03:04:05Z",
}


def model(found: ClusterAnswers, *events: PageEvent, namespace: str = "") -> Any:
    return page_model(found, namespace, events)


def test_a_pod_has_what_top_says_of_it() -> None:
    """Limit, told and used in words, and the numbers that bars and sorting need."""
    over = model(typical())["pods"][0]

    assert ("3072Mi", ["2150Mi", "plain"], "3500Mi", "114%", "bad") == tuple(
        over[key] for key in ("limit", "told", "used", "share", "tone")
    )
    assert (3500 * MIB, 3 * GIB, 1.1393, 0.6999) == tuple(
        over[key] for key in ("bytes", "most", "ratio", "cap")
    )
    assert {"text": ["over", "bad"], "over": 12.0, "due": 18.0, "verb": "evict"} == over["verdict"]


def test_every_verdict_is_that_of_the_table() -> None:
    """Where nothing is counted down the words are the same; where something is, they begin so."""
    for found in (typical(), odd(), silent(), stale()):
        for line, pod in zip(pod_lines(found, ""), model(found)["pods"], strict=True):
            assert verdict_on(line).text.startswith(pod["verdict"]["text"][0])
            assert pod["verdict"]["over"] or verdict_on(line).text == pod["verdict"]["text"][0]


def test_what_nobody_knows_is_null_and_never_zero() -> None:
    """Of an agent that does not answer there are cards without parts, and pods without amounts."""
    told = model(silent())

    assert [[]] * 4 == [card["parts"] for card in told["cards"]]
    assert {"?"} == {card["used"] for card in told["cards"]}
    assert {None} == {pod["bytes"] for pod in told["pods"]}
    assert {None} == {pod["ratio"] for pod in told["pods"]}
    assert (4, "?", "?") == tuple(told["sum"][key] for key in ("unknown", "used", "total"))
    assert ["?"] * 3 == [node["used"] for node in told["nodes"]]


def test_a_cards_bar_is_what_pods_others_and_nobody_hold() -> None:
    """
    Where a namespace is shown, the pods of others are one part; sums that do not agree make no
    part negative.
    """
    rows = (
        pod_row(use_row(2 * GIB)),
        pod_row(use_row(GIB), uid="u2", namespace="team-b"),
    )
    card = card_row(used_bytes=4 * GIB, unattributed_bytes=GIB // 2, total_bytes=8 * GIB)
    found = cluster(seen_pod(), agents=(agent(snapshot(*rows, cards=(card,))),))
    low = card._replace(used_bytes=GIB, unattributed_bytes=None)
    late = cluster(agents=(agent(snapshot(*rows, cards=(low,))),))

    assert [0.25, 0.1875, 0.0625] == model(found, namespace="team-a")["cards"][0]["parts"]
    assert [0.125, 0.0, 0.0] == model(late)["cards"][0]["parts"]


def test_cards_say_what_is_wrong_with_them() -> None:
    """And nothing where all is well."""
    states = [card["state"] for card in model(odd_cards())["cards"]]

    assert ["fell off the bus", "warn"] == states[0]
    assert ["", "good"] == states[3]
    assert ["no agent asked", "faint"] == states[4]


def test_events_are_the_newest_and_harmless() -> None:
    """What somebody has written is one line of bounded length."""
    old = PageEvent(
        "2026-01-02T03:04:04Z", "Old", "a/Pod/b", 1, "x\x1b[2J" + "y" * 2000, warning=False
    )
    many = [old] * MOST_EVENTS

    told = model(cluster(), *many, read_page_event(EVENT))["events"]
    assert {
        "at": "2026-01-02T03:04:05Z",
        "reason": "GPUMemoryLimitExceeded",
        "about": "team-a/Pod/trainer-0",
        "times": 3,
        "message": "holds too much",
        "tone": "warn",
    } == told[0]
    assert MOST_EVENTS == len(told)
    assert ("plain", True, 1003) == (
        told[1]["tone"],
        told[1]["message"].startswith("x?[2J"),
        len(told[1]["message"]),
    )


def test_what_is_no_event_is_refused() -> None:
    """Of an Event that says little, little is told."""
    assert PageEvent("", "", "Node", 1, "", warning=False) == read_page_event(
        {"involvedObject": {"kind": "Node"}, "count": "many"}
    )
    with pytest.raises(InvalidError):
        read_page_event({"metadata": 1})
