"""What the page of the dashboard shows of one look, and Events as episodes."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence.capped import Ending
from gpufence.errors import InvalidError
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.cluster_view import ClusterAnswers
from kubectl_gpufence.pod_lines import pod_lines, verdict_on
from kubectl_gpufence.pods import SeenEvent, read_event
from kubectl_gpufence.verbs.dashboard.episodes import (
    MOST_EPISODES,
    EventSubject,
    episodes,
    subject_of,
)
from kubectl_gpufence.verbs.dashboard.model import (
    page_model,
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


def model(found: ClusterAnswers, *events: SeenEvent, namespace: str = "") -> Any:
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
    said = {"text": ["over", "bad"], "over": 12.0, "due": 18.0, "verb": "evict in", "rest": ""}
    assert said == over["verdict"]


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
    assert {None} == {card["held"] for card in told["cards"]}
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
    assert ["no agent", "faint"] == states[4]


def said(about: str, at: int = 0, reason: str = "Over", **changes: Any) -> SeenEvent:
    moment = f"2026-01-02T03:04:{at:02}Z"
    return SeenEvent(moment, reason, 1, f"of {about}", about)._replace(**changes)


def owned(name: str, owner: str = "ReplicaSet/api-7d9f") -> Any:
    return pod_row(use_row(GIB), uid=name, name=name, owner=owner)


def groups_of(*events: SeenEvent, rows: tuple[Any, ...] = (owned("api-7d9f-x2x4k"),)) -> list[str]:
    found = replace(cluster(agents=(agent(snapshot(*rows)),)), pods=())
    return [item.group for item in episodes(events, pod_lines(found, ""))]


API, SET = "team-a/Deployment/api", "team-a/ReplicaSet/api-7d9f"


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ("team-a/Pod/api-7d9f-x2x4k", API),
        ("team-a/Pod/api-7d9f-gone1", API),
        (SET, API),
        (API, API),
        ("team-a/ReplicaSet/api-5c6d7f8b", API),
        ("team-a/Job/nightly-29412345", "team-a/CronJob/nightly"),
        ("team-a/Deployment/api-7d9f", "team-a/Deployment/api-7d9f"),
        ("team-a/StatefulSet/api", "team-a/StatefulSet/api"),
        ("team-a/Pod/api-7d9f-two-x2x4k", "team-a/Pod/api-7d9f-two-x2x4k"),
        ("team-b/Pod/api-7d9f-gone1", "team-b/Pod/api-7d9f-gone1"),
        ("team-b/Deployment/api", "team-b/Deployment/api"),
        ("team-a/Pod/lonely", "team-a/Pod/lonely"),
        ("Node/gpu-1", "Node/gpu-1"),
    ],
)
def test_an_event_belongs_to_the_owner_of_its_pod(about: str, expected: str) -> None:
    """Also that of a pod that is gone, or of the owner's owner; never that of another one."""
    assert [expected] == groups_of(said(about))


def test_a_pod_of_an_operators_kind_may_add_more_to_its_name() -> None:
    """Pods of a PyTorchJob are called by their part in it as well."""
    rows = (owned("net-worker-0", "PyTorchJob/net"), pod_row(use_row(GIB), owner=""))

    assert ["team-a/PyTorchJob/net"] == groups_of(said("team-a/Pod/net-worker-1"), rows=rows)


def test_an_episode_is_one() -> None:
    """However often, of however many pods; the same about their owner adds nothing."""
    events = (
        said(SET, 9, times=7),
        said("team-a/Pod/api-7d9f-gone1", 5, times=3, since="2026-01-02T03:00:00Z"),
        said("team-a/Pod/api-7d9f-x2x4k", 7, warning=True),
        said("team-a/Pod/api-7d9f-x2x4k", 1, "Evicted"),
    )
    (over, evicted) = model(cluster(agents=(agent(snapshot(owned("api-7d9f-x2x4k"))),)), *events)[
        "episodes"
    ]

    assert {
        "group": API,
        "reason": "Over",
        "since": "2026-01-02T03:00:00Z",
        "at": "2026-01-02T03:04:07Z",
        "times": 4,
        "pods": 2,
        "story": ["team-a", "api-7d9f-x2x4k"],
        "message": "of team-a/Pod/api-7d9f-x2x4k",
        "tone": "warn",
    } == over
    assert ("Evicted", 1, "plain") == tuple(evicted[key] for key in ("reason", "times", "tone"))


def test_an_owner_has_an_episode_without_its_pods() -> None:
    """A node has no pod whose story could be read."""
    (owner, node) = model(cluster(), said(SET, 2, times=7), said("Node/gpu-1", 1))["episodes"]

    assert (7, 0, None) == tuple(owner[key] for key in ("times", "pods", "story"))
    assert ("Node/gpu-1", None) == (node["group"], node["story"])
    assert EventSubject("", "Node", "gpu-1") == subject_of(said("Node/gpu-1"))


@pytest.mark.parametrize("reason", ["GPUMemoryEvicted", "GPUMemoryCapReached"])
def test_ends_of_pods_have_the_story_of_their_owner(reason: str) -> None:
    """The owner is there for longer than its pods; a pod without one stands for itself."""
    pods = (said("team-a/Pod/api-7d9f-gone1", 5, reason), said("team-a/Pod/alone", 3, reason))
    shown = cluster(agents=(agent(snapshot(owned("api-7d9f-x2x4k"))),))

    assert [["team-a", API.partition("/")[2]], ["team-a", "alone"]] == [
        item["story"] for item in model(shown, *pods)["episodes"]
    ]


def test_episodes_are_the_newest_and_harmless() -> None:
    """What somebody has written is one line of bounded length."""
    old = [
        said("a/Pod/b", 4, f"R{number}", message="\x1b[2J" + "y" * 2000) for number in range(300)
    ]

    told = model(cluster(), *old, read_event(EVENT))["episodes"]
    assert ("2026-01-02T03:04:05Z", 3, "warn") == tuple(
        told[0][key] for key in ("at", "times", "tone")
    )
    assert MOST_EPISODES == len(told)
    assert (True, 1003) == (told[1]["message"].startswith("?[2J"), len(told[1]["message"]))


def test_a_container_that_fails_is_shown_beside_its_pod() -> None:
    """With its last end, in its own words, how often, and what it waits for."""
    ending = Ending("main", 137, "OOMKilled", "2026-01-02T03:04:05Z", 5, "CrashLoopBackOff", "oom")
    calm = ending._replace(reason="Error", restarts=1, waiting="", out_of_memory="")
    found = cluster(replace(seen_pod(), endings=(ending, calm)), agents=(agent(snapshot()),))
    first, second = model(found)["pods"][0]["endings"]

    assert {
        "what": "main ended with exit code 137 (OOMKilled)",
        "at": "2026-01-02T03:04:05Z",
        "rest": ', said "oom", 5 restarts, now CrashLoopBackOff',
        "restarts": 5,
        "waits": True,
    } == first
    assert ("main ended with exit code 137", ", 1 restart", False) == tuple(
        second[key] for key in ("what", "rest", "waits")
    )


def test_cards_that_are_alike_are_named_once() -> None:
    """A node says what all of them are, and nothing where they differ."""
    two = (card_row(), card_row(1))
    alike = model(cluster(agents=(agent(snapshot(cards=two)),)))
    mixed = model(cluster(agents=(agent(snapshot(cards=(two[0], two[1]._replace(model="")))),)))

    assert "2 \u00d7 Tesla T4, 15360Mi" == alike["nodes"][0]["models"]
    assert "" == mixed["nodes"][0]["models"]
    assert ["Tesla T4, 15360Mi", "unknown model, 15360Mi"] == [
        card["model"] for card in mixed["cards"]
    ]


def test_a_card_says_how_hard_it_works_where_its_agent_does() -> None:
    """Agents of earlier versions do not, and a card without a sensor leaves out what it lacks."""
    cards = (
        card_row(busy_share=0.874, celsius=61, watts=42, most_watts=70),
        card_row(1, celsius=0, watts=9),
        card_row(2),
    )
    told = model(cluster(agents=(agent(snapshot(cards=cards)),)))["cards"]

    assert [["87% busy", "61 \u00b0C", "42 of 70 W"], ["0 \u00b0C", "9 W"], []] == [
        card["facts"] for card in told
    ]


def test_what_is_no_event_is_refused() -> None:
    """Of an Event that says little, little is told."""
    assert SeenEvent("", "", 1, "", "Node") == read_event(
        {"involvedObject": {"kind": "Node"}, "count": "many"}
    )
    with pytest.raises(InvalidError):
        read_event({"metadata": 1})
