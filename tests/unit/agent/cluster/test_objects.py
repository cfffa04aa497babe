"""What is sent to the API server."""

import re

import pytest

from agent.cluster.acts import deletion, eviction
from agent.cluster.event_writer import WrittenEvent, event, event_patch, name_event
from agent.cluster.settings import COMPONENT
from agent.events import Notice, Regarding
from agent.events.episodes import about_node
from gpufence import names
from tests.support.agent.builders import pod

NOW = "2026-01-02T03:04:05Z"
POD = Regarding("v1", "Pod", "team-a", "a", "uid-a")


def notice(about: Regarding = POD) -> Notice:
    return Notice(names.LIMIT_EXCEEDED, about, "3,900 MiB used")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train-1", "train-1.abc"),
        ("a.b-c", "a.b-c.abc"),
        ("Job:x", "gpufence-agent.abc"),
        ("x" * 250, "gpufence-agent.abc"),
    ],
)
def test_names_of_events(name: str, expected: str) -> None:
    """An Event is named after its object, if that makes a name."""
    about = Regarding("v1", "Pod", "team-a", name, "u")

    assert WrittenEvent("team-a", expected, NOW) == name_event(notice(about), "abc", NOW)


def test_event() -> None:
    """An Event of a pod has everything kubectl looks for."""
    assert {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "team-a", "name": "a.x"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team-a",
            "name": "a",
            "uid": "uid-a",
        },
        "type": "Warning",
        "reason": "GPUMemoryLimitExceeded",
        "message": "3,900 MiB used",
        "firstTimestamp": "then",
        "lastTimestamp": NOW,
        "count": 3,
        "source": {"component": "gpufence-agent", "host": "node-1"},
        "reportingComponent": "gpufence-agent",
        "reportingInstance": "node-1",
    } == event(notice(), WrittenEvent("team-a", "a.x", "then"), "node-1", 3, NOW)


def test_event_of_a_node() -> None:
    """An Event of something without a namespace lives in `default`."""
    about = notice(about_node("node-1"))
    made = event(about, name_event(about, "abc", NOW), "node-1", 1, NOW)

    assert "default" == made["metadata"]["namespace"]
    assert "namespace" not in made["involvedObject"]


def test_repetition() -> None:
    """A repetition changes count, time and message, and nothing else."""
    expected = {"count": 2, "lastTimestamp": NOW, "message": "3,900 MiB used"}

    assert expected == event_patch(notice(), 2, NOW)


@pytest.mark.parametrize(("own", "expected"), [(1000, 30), (7, 7), (0, 1), (-1, 1)])
def test_grace(own: int, expected: int) -> None:
    """A pod gets the grace it asks for, at most ours and at least a second."""
    options = eviction(pod(grace_seconds=own), 30)["deleteOptions"]

    assert expected == options["gracePeriodSeconds"]
    assert options == {
        key: value
        for key, value in deletion(pod(grace_seconds=own), 30).items()
        if key not in {"apiVersion", "kind"}
    }


def test_nobody_else_is_meant() -> None:
    """Evictions and deletions name the pod's UID."""
    said = str(eviction(pod("a"), 30)) + str(deletion(pod("a"), 30))

    assert 2 == len(re.findall(r"'preconditions': {'uid': 'uid-a'}", said))


def test_who_asks_for_an_eviction_and_why() -> None:
    """Admission hooks and audit logs can tell who asked for an eviction, and for what reason."""
    expected = {"reason": names.EVICTED, "requested-by": COMPONENT}

    assert expected == eviction(pod("a"), 30)["metadata"]["annotations"]
