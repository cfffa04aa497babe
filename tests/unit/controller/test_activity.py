"""How busy an owner is, why that is unknown, and how many Events an owner costs in a day."""

from collections.abc import Mapping
from typing import Any

import pytest

from controller.decide import nodes_of
from controller.keepers.activity.busyness import (
    OwnerActivity,
    UnknownActivity,
    activity_of,
    next_replica,
)
from controller.loop import HOUR_SECONDS, MOST_EVENTS, events_allowed
from controller.model import OwnerKey, OwnerState, PodState, Way
from gpufence.idle import IdleWords, WithoutGpu
from gpufence.pods import Pod
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot

GPU = Pod({}, (), "", {}, {})
BUSY = PodActivityRow("busy", 0.0, "Busy", busy_share=0.5)
IDLE = PodActivityRow("idle", 70.0, "NoKernels", busy_share=0.0)


def pod(name: str, **more: Any) -> PodState:
    said = {"node": "n", "phase": "Running", "priority": 0, "requests": {}, "gpu": GPU, **more}
    return PodState(uid=name, namespace="team", name=name, owner=None, **said)


def owner(*pods: PodState) -> OwnerState:
    return OwnerState(OwnerKey("team", "v1", "K", "o"), "u", "1", Way.SCALE, pods=pods)


def snapshot(*rows: PodRow, **more: Any) -> Snapshot:
    said = {"fresh": True, "stale_seconds": 0.1, **more}
    node = said.pop("node", "n")
    return Snapshot(node, "0", "", "", pods=rows, **said)


def row(name: str, activity: PodActivityRow | None) -> PodRow:
    return PodRow(name, "team", name, activity=activity)


def test_shares_add_up_and_the_shortest_rest_counts() -> None:
    """Pods that wait or are terminating do not count."""
    waiting = pod("waiting", node="", phase="Pending")
    going = pod("going", terminating=True)
    plain = pod("plain", gpu=None, node="", phase="Pending")
    found = activity_of(
        owner(pod("a"), pod("b"), waiting, going, plain),
        {"n": snapshot(row("a", BUSY), row("b", IDLE))},
    )

    assert OwnerActivity(0.5, 0.0) == found


def test_a_pod_that_runs_without_a_gpu_is_not_taken_for_nothing() -> None:
    """An autoscaler would end its work; where it is to be ignored, the others are the answer."""
    mixed = owner(pod("a"), pod("leader", gpu=None, node="elsewhere"))
    words = IdleWords(900.0, 60.0, without_gpu=WithoutGpu.IGNORE)
    rows = {"n": snapshot(row("a", IDLE))}
    found = activity_of(mixed, rows)

    assert isinstance(found, UnknownActivity)
    assert found.why.startswith("pod leader asks for no GPU")
    assert OwnerActivity(0.0, 70.0) == activity_of(mixed._replace(words=words), rows)
    assert {"n"} == nodes_of(mixed)


def test_an_owner_without_running_pods_does_nothing() -> None:
    """Since when, nobody says."""
    assert OwnerActivity(0.0, None) == activity_of(owner(), {})
    assert {"n"} == nodes_of(owner(pod("a")))


UNKNOWN: dict[str, tuple[Snapshot | None, str]] = {
    "silent": (None, "the agent of node n does not answer"),
    "another": (snapshot(node="m"), "who answers for node n is the agent of m"),
    "trouble": (snapshot(trouble="no NVML"), "the agent of node n cannot tell: no NVML"),
    "deaf": (
        snapshot(fresh=False),
        "the agent of node n cannot tell: it does not hear from the API server",
    ),
    "never": (snapshot(stale_seconds=None), "what the agent of node n knows is too old"),
    "stale": (snapshot(stale_seconds=11.0), "what the agent of node n knows is too old"),
    "stranger": (snapshot(), "the agent of node n does not tell what pod a does"),
    "older": (snapshot(row("a", None)), "the agent of node n does not tell what pod a does"),
    "unknown": (
        snapshot(row("a", PodActivityRow("unknown", None, "NotMeasurable", "MPS"))),
        "pod a is unknown: MPS",
    ),
    "no share yet": (
        snapshot(row("a", PodActivityRow("idle", 1.0, "NoKernels"))),
        "pod a is idle: no reason",
    ),
}


@pytest.mark.parametrize(("said", "why"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_nobody_knows_is_no_number(said: Snapshot | None, why: str) -> None:
    """One pod that is unknown is enough."""
    assert UnknownActivity(why) == activity_of(owner(pod("a")), {"n": said})


def test_pods_that_follow_a_leader_are_one_replica_with_it() -> None:
    """As busy as the busiest of them; the next replica has as many."""
    group = pod("follower", leader="first"), pod("first")
    found = activity_of(
        owner(*group, pod("second")),
        {"n": snapshot(row("first", IDLE), row("follower", BUSY), row("second", BUSY))},
    )

    assert OwnerActivity(1.0, 0.0) == found
    assert ["first", "follower"] == [item.name for item in next_replica(owner(*group))]


def test_the_next_replica_is_as_its_template_says_or_its_pods_are() -> None:
    """On no node yet; if it is unknown there is none."""
    template = pod("more", node="")
    templated = owner(pod("a"))._replace(template=template)

    assert [template] == next_replica(templated)
    assert [pod("a", node="")] == next_replica(owner(pod("gone", terminating=True), pod("a")))
    assert [pod("a", node="")] == next_replica(owner(pod("plain", gpu=None), pod("a")))
    assert [] == next_replica(owner(pod("gone", terminating=True)))


PASS_SECONDS = 60.0


def day_of(pods: int, step_seconds: float) -> tuple[list[float], list[int]]:
    """Return when Events were written, and how many each time, for a day of announcements."""
    said: Mapping[str, tuple[float, ...]] = {}
    times, counts = [], []
    for step in range(int(24 * HOUR_SECONDS / step_seconds)):
        now = step * step_seconds
        said, allowed = events_allowed(said, "uid", 1 + pods, now)
        times += [now] * allowed
        counts.append(allowed)
    return times, counts


def test_an_owner_that_goes_and_comes_all_day_is_written_of_twenty_times_an_hour() -> None:
    """However many pods it has, and however often something happens to it."""
    for pods in (0, 1, 200):
        times, _ = day_of(pods, PASS_SECONDS)

        assert MOST_EVENTS == max(sum(at <= x < at + HOUR_SECONDS for x in times) for at in times)


def test_the_owner_hears_of_everything_as_long_as_it_can() -> None:
    """Its first pods are written of as well, and later the owner alone."""
    _, counts = day_of(200, 5 * PASS_SECONDS)

    assert 7 == counts[0]
    assert {1} == set(counts[1:12])


def test_owners_do_not_share() -> None:
    """What one has used up takes nothing from another, and after an hour it is forgotten."""
    said, first = events_allowed({}, "a", 3, 0.0)
    said, other = events_allowed(said, "b", 3, 1.0)
    said, later = events_allowed(said, "b", 3, HOUR_SECONDS + 0.5)

    assert (3, 3) == (first, other)
    assert {"b"} == said.keys()
    assert 3 == later
