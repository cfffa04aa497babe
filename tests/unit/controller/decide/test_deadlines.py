"""When idle owners go."""

from typing import Any

import pytest

from controller.decide.demand import waiting_pods
from controller.decide.owners import Hold, idleness
from controller.decide.release import (
    Due,
    Dues,
    announcement,
    demands,
    dues,
    soonest,
    told,
)
from controller.model import Announcement, ClusterState, NoticeGiven, OwnerKey, OwnerState
from controller.rules import ReleaseRules
from gpufence import names
from gpufence.idle import IdleRung, WakeBy
from tests.support.release import (
    NOW,
    WORDS,
    cluster,
    idle_pod,
    owner_key,
    owner_state,
    pod_state,
    waiting_pod,
)

RULES = ReleaseRules()
JOB = waiting_pod(requests={names.NVIDIA_GPU: 2})
WAITER = "team-b/job-0"


def worker(
    name: str, minutes: float = 30.0, rung: IdleRung | None = IdleRung.RELEASE
) -> OwnerState:
    return owner_state(idle_pod(f"{name}-0", minutes=minutes), name=name, rung=rung)


def demanded(world: ClusterState) -> dict[OwnerKey, str]:
    found = {key: idleness(owner, RULES) for key, owner in world.owners.items()}
    return demands(world, waiting_pods(world, RULES), found, RULES)


def test_nobody_who_waits_is_no_demand() -> None:
    """Without waiters, and without idle owners, there is nothing to hurry for."""
    assert {} == demanded(cluster(worker("a")))
    assert {} == demanded(cluster(pods=[JOB, pod_state("a"), pod_state("b")]))


def test_who_waits_is_named() -> None:
    """A job that needs both cards waits for the worker on one of them."""
    assert {owner_key("a"): WAITER} == demanded(cluster(worker("a"), pods=[JOB]))


def test_those_who_can_go_are_asked_before_those_who_cannot() -> None:
    """An owner that is only reported is said to be waited for where nobody else is of help."""
    job = waiting_pod()
    reported = worker("a", 60, rung=IdleRung.REPORT)
    kept = worker("b", 60)._replace(words=WORDS._replace(keep_until=NOW + 60))
    free = worker("c", 10)

    assert [owner_key("c")] == list(demanded(cluster(reported, free, pods=[job])))
    assert [owner_key("c")] == list(demanded(cluster(kept, free, pods=[job])))
    assert [owner_key("a")] == list(
        demanded(cluster(reported._replace(words=None), kept, pods=[job]))
    )


def test_an_owner_goes_after_its_time() -> None:
    """A quarter of an hour after its last work, announced five minutes before."""
    owner = worker("a", 10)
    since = NOW - 600

    assert Dues(Due(owner, since, since + 900, 900.0, 300.0), None) == dues(
        owner, since, "", NOW, RULES
    )


def test_an_owner_goes_sooner_where_somebody_waits() -> None:
    """A minute after its last work, announced half a minute before."""
    owner = worker("a", 10)
    since = NOW - 600
    usual = Due(owner, since, since + 900, 900.0, 300.0)
    sooner = Due(owner, since, since + 60, 60.0, 30.0, waiter=WAITER)

    assert Dues(usual, sooner) == dues(owner, since, WAITER, NOW, RULES)
    assert sooner == Dues(usual, sooner).first


def test_who_would_be_back_goes_for_others_alone() -> None:
    """An owner that comes back when its place is free has no time of its own."""
    owner = worker("a", 10)._replace(words=WORDS._replace(wake=WakeBy.WHEN_FREE))
    since = NOW - 600
    item = Due(owner, since, since + 60, 60.0, 30.0, waiter=WAITER)

    assert None is dues(owner, since, "", NOW, RULES)
    assert Dues(None, item) == dues(owner, since, WAITER, NOW, RULES)
    assert NoticeGiven(None, Announcement(NOW, NOW + 30)) == told(
        Dues(None, item), NoticeGiven(), NOW
    )


def test_what_holds_an_owner_moves_its_deadline() -> None:
    """It goes when both its time is up and nothing holds it."""
    owner = worker("a")._replace(words=WORDS._replace(keep_until=NOW + 60))
    hold = Hold(NOW + 60, "it is to be kept until 2027-01-15T08:01:00Z", kept=True)

    assert Dues(Due(owner, NOW - 1800, NOW + 60, 900.0, 300.0, hold), None) == dues(
        owner, NOW - 1800, "", NOW, RULES
    )


@pytest.mark.parametrize("changes", [{"words": None}, {"rung": None}])
def test_an_owner_that_stays_has_no_deadline(changes: dict[str, Any]) -> None:
    """What may not be released is not due."""
    assert None is dues(worker("a")._replace(**changes), NOW - 1800, "", NOW, RULES)


ITEM = Due(worker("a"), NOW - 600, NOW + 300, 900.0, 300.0)


@pytest.mark.parametrize(
    ("deadline", "said", "expected"),
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
    deadline: float, said: Announcement | None, expected: Announcement | None
) -> None:
    """It is made a time of notice ahead, and again in time where the owner goes much later."""
    assert expected == announcement(ITEM._replace(deadline=deadline), said, NOW)


def test_what_was_said_long_ago_is_said_again() -> None:
    """Who was kept for a day does not go by yesterday's word."""
    old = Announcement(NOW - 80000, NOW - 79700)
    said = announcement(ITEM._replace(deadline=NOW + 250), old, NOW)

    assert Announcement(NOW, NOW + 300) == said


def test_the_soonest_of_two_words_holds() -> None:
    """Somebody who waits shortens the notice, not what was announced with more."""
    usual = ITEM._replace(deadline=NOW + 50)
    sooner = ITEM._replace(deadline=NOW - 600, threshold_seconds=60.0, lead_seconds=30.0)
    first = NoticeGiven(Announcement(NOW - 250, NOW + 50))
    early = told(Dues(usual, sooner), first, NOW)
    late = told(Dues(usual, sooner), first, NOW + 25)

    assert (sooner, Announcement(NOW, NOW + 30)) == soonest(Dues(usual, sooner), early)
    assert (usual, first.usual) == soonest(Dues(usual, sooner), late)


def test_what_was_said_before_somebody_waited_holds_again() -> None:
    """
    Brought forward for a waiter that has since gone, an owner goes when it was to go at first.
    """
    first = Announcement(NOW - 100, NOW + 200)
    usual = ITEM._replace(deadline=NOW + 200)
    sooner = ITEM._replace(deadline=NOW - 600, threshold_seconds=60.0, lead_seconds=30.0)
    second = told(Dues(usual, sooner), NoticeGiven(first), NOW)

    assert NoticeGiven(first, Announcement(NOW, NOW + 30)) == second
    assert second == told(Dues(usual, sooner), second, NOW + 10)
    assert NoticeGiven(first) == told(Dues(usual, None), second, NOW + 20)
