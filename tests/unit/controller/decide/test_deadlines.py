"""When idle owners are released, what is said of it before, and what a last look has against it."""

from dataclasses import replace
from typing import Any

import pytest

from controller.decide import decide, last_look, why_not
from controller.model import (
    Announcement,
    ClusterState,
    LastLook,
    NoticeGiven,
    OwnerState,
    ReleaseDecision,
    ReleaseMemory,
    ReleaseRules,
)
from gpufence import names
from gpufence.idle import IdleRung, WakeBy
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot
from tests.support.release import NOW, WORDS, cluster, idle_pod, owner_state, pod_state, waiting_pod

RULES = ReleaseRules()
EMPTY = ReleaseMemory()
JOB = waiting_pod(requests={names.NVIDIA_GPU: 2})
WAITER = "team-b/job-0"
UID = "uid-of-a"


def worker(
    name: str = "a", minutes: float = 30.0, rung: IdleRung | None = IdleRung.RELEASE
) -> OwnerState:
    return owner_state(idle_pod(f"{name}-0", minutes=minutes), name=name, rung=rung)


def due_at(deadline: float) -> OwnerState:
    """Build an owner that goes then, a quarter of an hour after its last work."""
    return worker(minutes=(NOW + 900 - deadline) / 60)


def decided(world: ClusterState, given: NoticeGiven | None = None) -> ReleaseDecision:
    memory = EMPTY if given is None else replace(EMPTY, announced={UID: given})
    return decide(world, memory, RULES)


def given(world: ClusterState, before: NoticeGiven | None = None) -> NoticeGiven | None:
    return decided(world, before).memory.announced.get(UID)


def deadline(world: ClusterState, before: NoticeGiven | None = None) -> float | None:
    standings = decided(world, before).standings.values()
    return next(each.deadline for each in standings if each.key.name == "a")


def waited_for(world: ClusterState) -> list[str]:
    standings = decided(world).standings.values()
    return [each.key.name for each in standings if each.waiters]


def test_no_waiter_is_no_demand() -> None:
    """Without waiters, and without idle owners, there is nothing to hurry for."""
    busy = owner_state(pod_state("b-0", idle="False", idle_at=NOW), name="b")

    assert [] == waited_for(cluster(worker()))
    assert [] == waited_for(cluster(busy, pods=[JOB]))


def test_the_pod_that_waits_is_named() -> None:
    """A job that needs both cards waits for the worker on one of them."""
    (standing,) = decided(cluster(worker(), pods=[JOB])).standings.values()

    assert (True, (WAITER,)) == (standing.contended, standing.waiters)


def test_those_that_can_go_are_asked_before_those_that_cannot() -> None:
    """An owner that is only reported is waited for where no other one is of help."""
    job = waiting_pod()
    reported = worker("a", 60, rung=IdleRung.REPORT)
    kept = worker("b", 60)._replace(words=WORDS._replace(keep_until=NOW + 60))
    free = worker("c", 10)

    assert ["c"] == waited_for(cluster(reported, free, pods=[job]))
    assert ["c"] == waited_for(cluster(kept, free, pods=[job]))
    assert ["a"] == waited_for(cluster(reported._replace(words=None), kept, pods=[job]))


def test_an_owner_goes_sooner_where_a_pod_waits() -> None:
    """A minute after its last work, announced half a minute before."""
    owner = worker(minutes=10)
    hurried = cluster(owner, pods=[JOB])

    assert NOW + 300 == deadline(cluster(owner))
    assert NoticeGiven(Announcement(NOW, NOW + 300), Announcement(NOW, NOW + 30)) == given(hurried)
    assert NOW + 30 == deadline(hurried)
    assert {60.0} == {act.threshold_seconds for act in decided(hurried).acts}


def test_an_owner_that_would_be_back_goes_for_others_alone() -> None:
    """One that comes back when its place is free has no time of its own."""
    owner = worker(minutes=10)._replace(words=WORDS._replace(wake=WakeBy.WHEN_FREE))

    assert None is deadline(cluster(owner))
    assert NoticeGiven(None, Announcement(NOW, NOW + 30)) == given(cluster(owner, pods=[JOB]))


def test_what_holds_an_owner_moves_its_deadline() -> None:
    """It goes when both its time is up and nothing holds it."""
    owner = worker()._replace(words=WORDS._replace(keep_until=NOW + 400))
    (standing,) = decided(cluster(owner)).standings.values()

    assert (NOW + 400, "kept", "it is to be kept until 2027-01-15T08:06:40Z") == (
        standing.deadline,
        standing.state,
        standing.why,
    )


@pytest.mark.parametrize("changes", [{"words": None}, {"rung": None}])
def test_an_owner_that_stays_has_no_deadline(changes: dict[str, Any]) -> None:
    """What may not be released is not due."""
    assert None is deadline(cluster(worker()._replace(**changes)))


@pytest.mark.parametrize(
    ("at", "said", "expected"),
    [
        (NOW + 301, None, None),
        (NOW + 300, None, Announcement(NOW, NOW + 300)),
        (NOW - 600, None, Announcement(NOW, NOW + 300)),
        (NOW + 100, Announcement(NOW - 200, NOW + 100), Announcement(NOW - 200, NOW + 100)),
        (NOW - 600, Announcement(NOW - 200, NOW + 100), Announcement(NOW - 200, NOW + 100)),
        (NOW - 600, Announcement(NOW - 500, NOW - 200), Announcement(NOW - 500, NOW - 200)),
        (NOW + 500, Announcement(NOW - 100, NOW + 200), None),
        (NOW + 250, Announcement(NOW - 40, NOW + 200), Announcement(NOW - 40, NOW + 260)),
    ],
)
def test_an_announcement_stands_as_long_as_it_is_true(
    at: float, said: Announcement | None, expected: Announcement | None
) -> None:
    """It is made a time of notice ahead, and again in time where the owner goes much later."""
    found = given(cluster(due_at(at)), NoticeGiven(said))

    assert expected == (None if found is None else found.usual)


def test_what_was_said_long_ago_is_said_again() -> None:
    """An owner that was kept for a day does not go by yesterday's word."""
    old = NoticeGiven(Announcement(NOW - 80000, NOW - 79700))

    assert NoticeGiven(Announcement(NOW, NOW + 300)) == given(cluster(due_at(NOW + 250)), old)


def test_the_soonest_of_two_announcements_holds() -> None:
    """A pod that waits shortens the notice, not what was announced with more."""
    first = NoticeGiven(Announcement(NOW - 250, NOW + 50))
    owner = due_at(NOW + 50)

    assert NOW + 30 == deadline(cluster(owner, pods=[JOB]), first)
    assert NOW + 50 == deadline(cluster(owner, pods=[JOB], now=NOW + 25), first)


def test_what_was_said_before_a_pod_waited_holds_again() -> None:
    """
    Brought forward for a waiter that has since gone, an owner goes when it was to go at first.
    """
    first = Announcement(NOW - 100, NOW + 200)
    owner = due_at(NOW + 200)
    second = given(cluster(owner, pods=[JOB]), NoticeGiven(first))

    assert NoticeGiven(first, Announcement(NOW, NOW + 30)) == second
    assert second == given(cluster(owner, pods=[JOB], now=NOW + 10), second)
    assert NoticeGiven(first) == given(cluster(owner, now=NOW + 20), second)


IDLE = PodActivityRow("idle", 1200.0, "NoKernels")


def pod_row(name: str = "worker-0", **changes: Any) -> PodRow:
    return PodRow(f"uid-of-{name}", "team-a", name, activity=IDLE)._replace(**changes)


def snapshot(*pods: PodRow, **changes: Any) -> Snapshot:
    at = "2027-01-15T08:00:00Z"
    whole = Snapshot("node-1", "1", at, at, fresh=True, stale_seconds=1.0, pods=pods)
    return whole._replace(**changes)


def test_all_agents_must_say_idle() -> None:
    """The least idle of the pods counts; pods that end or have no GPU are not asked about."""
    owner = owner_state(
        idle_pod("a"),
        idle_pod("b", node="node-2"),
        waiting_pod("c"),
        idle_pod("d", terminating=True),
        pod_state("e", gpu=None),
    )
    snapshots = {
        "node-1": snapshot(pod_row("a")),
        "node-2": snapshot(pod_row("b", activity=IDLE._replace(idle_seconds=900.0)), node="node-2"),
    }

    assert LastLook(900.0) == last_look(owner, snapshots)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "the agent of node node-1 does not answer"),
        (
            snapshot(pod_row(), node="node-9"),
            "who answers for node node-1 is the agent of node-9",
        ),
        (
            snapshot(pod_row(), fresh=False),
            "the agent of node node-1 cannot tell: it does not hear from the API server",
        ),
        (
            snapshot(pod_row(), trouble="NVML hangs"),
            "the agent of node node-1 cannot tell: NVML hangs",
        ),
        (
            snapshot(pod_row(), stale_seconds=10.5),
            "what the agent of node node-1 knows is too old",
        ),
        (
            snapshot(pod_row(), stale_seconds=None),
            "what the agent of node node-1 knows is too old",
        ),
        (snapshot(), "the agent of node node-1 does not tell what pod worker-0 does"),
        (
            snapshot(pod_row(uid="another")),
            "the agent of node node-1 does not tell what pod worker-0 does",
        ),
        (
            snapshot(pod_row(activity=None)),
            "the agent of node node-1 does not tell what pod worker-0 does",
        ),
        (
            snapshot(pod_row(activity=PodActivityRow("busy", 0.0, "Busy"))),
            "pod worker-0 is busy",
        ),
        (
            snapshot(pod_row(activity=PodActivityRow("unknown", None, "x", "MPS is there"))),
            "pod worker-0 is unknown (MPS is there)",
        ),
        (
            snapshot(pod_row(activity=IDLE._replace(idle_seconds=None))),
            "it is unknown since when pod worker-0 has been idle",
        ),
    ],
)
def test_whoever_does_not_say_idle_speaks_against_it(answer: Snapshot | None, why: str) -> None:
    """Silence, old news, another pod and anything but idle end a release."""
    look = last_look(owner_state(idle_pod()), {"node-1": answer})

    assert LastLook(None, why) == look
    assert why == why_not(look, 60)


def test_an_owner_without_pods_is_not_looked_at() -> None:
    """Where there is nobody, nobody is idle."""
    assert LastLook(None, "it has no pod on any node") == last_look(owner_state(), {})


def test_idle_must_have_been_long_enough() -> None:
    """Whoever worked after the condition was written is found out."""
    assert "" == why_not(LastLook(900.0), 900)
    assert "one of its pods has been idle for 14 min 59 s only" == why_not(LastLook(899.0), 900)
    assert "unknown" == why_not(LastLook(None), 900)
