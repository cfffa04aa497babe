"""Since when all pods of an owner have been idle, and what stands against its release."""

from typing import Any

import pytest

from controller.decide.owners import idleness, latest_hold, objection
from controller.model import OwnerState, PodState, Way
from controller.rules import ReleaseRules
from gpufence.errors import annotation_problem
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy
from tests.support.release import (
    NOW,
    WORDS,
    idle_pod,
    owner_state,
    pod_state,
    waiting_pod,
)

RULES = ReleaseRules()
BUSY = pod_state("busy", idle="False", idle_at=NOW - 60)
NOTE = ReleaseNote(ReleasePhase.WOKEN, NOW - 7200, 1, "idle", woken_at=NOW - 3600)


def found(*pods: PodState) -> tuple[str, str]:
    return idleness(owner_state(*pods), RULES)[:2]


def test_an_owner_is_idle_since_the_last_of_its_pods_is() -> None:
    """The condition came a minute after the pod's last work."""
    owner = owner_state(idle_pod("a", minutes=40), idle_pod("b", minutes=10))
    expected = "all its pods have been idle since 2027-01-15T07:50:00Z"

    assert ("idle", expected, NOW - 600) == idleness(owner, RULES)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([idle_pod("a"), BUSY], ("busy", "pod busy uses its GPU")),
        ([pod_state("b", idle="Unknown"), BUSY], ("busy", "pod busy uses its GPU")),
        (
            [idle_pod("a"), pod_state("b", idle="Unknown")],
            ("unknown", "pod b cannot be measured, as its condition says"),
        ),
        (
            [idle_pod("a"), pod_state("b")],
            ("unknown", "pod b has not been idle for long enough to be called so"),
        ),
        (
            [pod_state("b", idle="True")],
            ("unknown", "pod b has not been idle for long enough to be called so"),
        ),
        ([], ("unknown", "none of its pods has a GPU yet")),
        ([waiting_pod("a")], ("unknown", "none of its pods has a GPU yet")),
        ([idle_pod("a", terminating=True)], ("unknown", "none of its pods has a GPU yet")),
    ],
)
def test_what_nobody_can_tell_is_never_idle(
    pods: list[PodState], expected: tuple[str, str]
) -> None:
    """One pod that works makes its owner busy, one of which nobody can tell makes it unknown."""
    assert expected == found(*pods)


def test_pods_that_end_or_have_no_gpu_say_nothing() -> None:
    """
    Idle is what holds of those that have a GPU and stay.
    """
    ending = pod_state("ending", idle="False", terminating=True)

    assert "idle" == found(idle_pod(), ending, pod_state("launcher", gpu=None))[0]


def test_a_pod_that_no_node_takes_does_nothing() -> None:
    """Its time begins when it began to wait."""
    owner = owner_state(idle_pod("a", minutes=60), waiting_pod("b", seconds=120))

    assert NOW - 120 == idleness(owner, RULES).since


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"way": Way.NEVER, "why_not": "HorizontalPodAutoscaler web scales it"},
            "HorizontalPodAutoscaler web scales it",
        ),
        ({"way": Way.NEVER}, "nothing that gpufence may scale owns its pods"),
        (
            {"rung": None},
            (
                "its namespace has no label gpufence.io/idle of report, warn or release: "
                "it is only measured"
            ),
        ),
        ({"rung": IdleRung.REPORT}, "gpufence.io/idle is only report here"),
        ({"words": None}, "its annotations or its replicas cannot be read"),
        ({"replicas": None}, "its annotations or its replicas cannot be read"),
        (
            {
                "words": WORDS._replace(
                    problems=(annotation_problem("k", "v", "is bad", "mend it"),)
                )
            },
            'metadata.annotations[k]: "v" is bad; mend it',
        ),
        (
            {"budget": 1},
            "a release takes all its 2 pods at once, and their PodDisruptionBudget lets 1 go",
        ),
        (
            {"words": WORDS._replace(wake=WakeBy.WHEN_FREE)},
            "it comes back when its place is free, so it goes only for somebody who waits",
        ),
        ({"budget": 2}, ""),
        ({"rung": IdleRung.WARN}, ""),
        ({}, ""),
    ],
)
def test_what_stands_against_a_release_is_said(changes: dict[str, Any], sentence: str) -> None:
    """A person reads why an idle owner stays."""
    owner = owner_state(idle_pod("a"), idle_pod("b"))._replace(**changes)

    assert sentence == objection(owner, contended=False)


def test_who_comes_back_by_himself_goes_for_others() -> None:
    """Contention is what an owner that wakes when free gives way to."""
    owner = owner_state(idle_pod(), words=WORDS._replace(wake=WakeBy.WHEN_FREE))

    assert "" == objection(owner, contended=True)


def hold(owner: OwnerState) -> tuple[float, str, bool] | None:
    return latest_hold(owner, NOW, RULES)


def test_nothing_holds_an_owner_that_has_run_for_long() -> None:
    """What is over holds nobody."""
    words = WORDS._replace(keep_until=NOW - 1)
    note = NOTE._replace(left_alone_until=NOW - 1)

    assert None is hold(owner_state(idle_pod(), words=None))
    assert None is hold(owner_state(idle_pod(), words=words, note=note))
    assert None is hold(owner_state(waiting_pod()))
    assert None is hold(owner_state(idle_pod(), note=NOTE._replace(woken_at=None)))


def test_an_owner_warms_up() -> None:
    """The youngest pod counts from when it was ready, one that never was from when it was idle."""
    why = "its youngest pod was ready less than 15 min 0 s ago"
    ready = owner_state(idle_pod("a"), idle_pod("b", ready_at=NOW - 600))
    never = owner_state(idle_pod("a", ready_at=None, minutes=10))

    assert (NOW + 300, why, False) == hold(ready)
    assert (NOW - 540 + 900, why, False) == hold(never)


def test_a_word_keeps() -> None:
    """What is to be kept is shown as kept."""
    owner = owner_state(idle_pod(), words=WORDS._replace(keep_until=NOW + 3600))

    assert (NOW + 3600, "it is to be kept until 2027-01-15T09:00:00Z", True) == hold(owner)


def test_what_came_back_has_its_peace() -> None:
    """For half an hour after a wake nobody takes it again."""
    owner = owner_state(idle_pod(), note=NOTE._replace(woken_at=NOW - 600))

    assert (NOW + 1200, "it came back less than 30 min 0 s ago", False) == hold(owner)


def test_what_was_contested_is_left_alone() -> None:
    """The latest of all that holds is what is said."""
    note = NOTE._replace(woken_at=NOW - 600, left_alone_until=NOW + 7200)
    why = "its release was contested, so it is left alone until 2027-01-15T10:00:00Z"

    assert (NOW + 7200, why, True) == hold(owner_state(idle_pod(), note=note))
