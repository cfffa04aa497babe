"""What note and replicas say together, and which released owners come back by themselves."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from controller.decide import decide
from controller.model import (
    Act,
    Announcement,
    NoticeGiven,
    OwnerState,
    PodState,
    ReleaseMemory,
    ReleaseRules,
    Standing,
    Step,
    Way,
)
from gpufence.errors import annotation_problem
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy
from tests.support.release import (
    NOW,
    WORDS,
    cluster,
    idle_pod,
    noted,
    owner_key,
    owner_state,
    waiting_pod,
)

RULES = ReleaseRules()
EMPTY = ReleaseMemory()
WHY = "all its pods have been idle since 2027-01-15T07:30:00Z"
AT = NOW - 120
RELEASING = ReleaseNote(ReleasePhase.RELEASING, AT, 2, "idle since noon")
RELEASED = RELEASING._replace(phase=ReleasePhase.RELEASED)
WAKING = RELEASED._replace(phase=ReleasePhase.WAKING, woken_at=NOW - 20, woken_by="when-free")
WOKEN = WAKING._replace(phase=ReleasePhase.WOKEN)
OWNER = owner_state(idle_pod("a"), idle_pod("b"))


def on_note(step: Step, note: ReleaseNote | None) -> Act:
    return Act(step, owner_key(), "", "", note=note, uid="uid-of-worker", version="7")


def done(owner: OwnerState, memory: ReleaseMemory = EMPTY) -> Act | None:
    """Return what is done about an owner beside that it is announced."""
    acts = decide(cluster(owner), memory, RULES).acts
    return next((each for each in acts if each.step is not Step.ANNOUNCE), None)


def act(note: ReleaseNote, replicas: int | None) -> Act | None:
    return done(noted(OWNER, note, replicas or 0)._replace(replicas=replicas))


def release(owner: OwnerState) -> Act | None:
    """Return the release of an owner whose deadline has come."""
    told = NoticeGiven(Announcement(NOW - 300, NOW))
    return done(owner, replace(EMPTY, announced={owner.uid: told}))


@pytest.mark.parametrize(
    ("note", "replicas"),
    [(RELEASED, 0), (WOKEN, 2), (WOKEN, 0), (RELEASED, None), (WAKING._replace(woken_at=None), 0)],
)
def test_a_note_that_agrees_is_left_alone(note: ReleaseNote, replicas: int | None) -> None:
    """Released without replicas, woken with them, or scaled down by its people since."""
    assert None is act(note, replicas)


def test_owners_that_are_not_ours_to_scale_keep_their_notes() -> None:
    """
    Nothing is written on what an autoscaler has since taken over, or on what was never released.
    """
    assert None is done(OWNER)
    assert None is done(OWNER._replace(note=RELEASING, way=Way.NEVER))


def test_a_release_cut_short_before_the_scaling_never_was() -> None:
    """The note goes, but for what it still tells of earlier releases."""
    earlier = RELEASING._replace(woken_at=NOW - 9000, contested=(NOW - 9000,))

    assert on_note(Step.DROP_NOTE, None) == act(RELEASING, 2)
    assert on_note(Step.DROP_NOTE, earlier._replace(phase=ReleasePhase.WOKEN)) == act(earlier, 2)


def test_a_release_cut_short_after_the_scaling_is_noted() -> None:
    """The replicas are gone, so it is released."""
    assert on_note(Step.NOTE_RELEASED, RELEASED) == act(RELEASING, 0)


def test_our_own_wake_is_written_down() -> None:
    """Who brought it back, and when, is what was noted before."""
    assert on_note(Step.NOTE_WOKEN, WOKEN) == act(WAKING, 2)


def test_a_late_wake_contests_nothing() -> None:
    """Somebody scales it up an hour after its release, because there is work."""
    late = RELEASED._replace(at=NOW - 3600)
    expected = late._replace(phase=ReleasePhase.WOKEN, woken_at=NOW)

    assert on_note(Step.NOTE_WOKEN, expected) == act(late, 2)


@pytest.mark.parametrize(
    ("note", "at"), [(RELEASED, NOW), (WAKING._replace(woken_by="", woken_at=None), NOW)]
)
def test_a_wake_soon_after_a_release_contests_it(note: ReleaseNote, at: float) -> None:
    """Whoever else brings it back within ten minutes is remembered."""
    woken = note._replace(phase=ReleasePhase.WOKEN, woken_at=at, woken_by="", contested=(at,))

    assert on_note(Step.NOTE_WOKEN, woken) == act(note, 2)


@pytest.mark.parametrize("woken_at", [NOW - 20, None])
def test_who_says_that_he_wakes_it_contests_nothing(woken_at: float | None) -> None:
    """A person who types the command for it has seen what happened, and its peace follows."""
    note = WAKING._replace(woken_by="kubectl", woken_at=woken_at)
    woken = note._replace(phase=ReleasePhase.WOKEN, woken_at=woken_at or NOW)

    assert on_note(Step.NOTE_WOKEN, woken) == act(note, 2)


def test_twice_contested_is_left_alone_for_a_day() -> None:
    """
    Two wakes of somebody's in a day are an answer, and an Event says so; older ones do not count.
    """
    note = RELEASED._replace(contested=(NOW - 90000, NOW - 5000))
    found = act(note, 2)

    assert found is not None
    assert "GPUIdleReleaseContested" == found.reason
    assert (
        "brought back 2 min 0 s after its release, 2 times already: "
        "it is left alone until 2027-01-16T08:00:00Z"
    ) == found.message
    assert found.note is not None
    assert ((NOW - 5000, NOW), NOW + 86400) == (found.note.contested, found.note.left_alone_until)


def wake(note: ReleaseNote, message: str) -> Act:
    return Act(
        Step.WAKE,
        owner_key(),
        "GPUIdleWoken",
        message,
        note=note,
        done=note._replace(phase=ReleasePhase.WOKEN),
        replicas=2,
        uid="uid-of-worker",
        version="7",
    )


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (5.0, None),
        (20.0, wake(WAKING, "back with 2 replicas, as was begun before")),
        (
            601.0,
            on_note(
                Step.NOTE_RELEASED,
                RELEASED._replace(woken_at=NOW - 601, woken_by="when-free"),
            ),
        ),
    ],
)
def test_a_wake_that_was_begun_is_finished(age: float, expected: Act | None) -> None:
    """Whoever began it may still be at it; after ten minutes nobody knows what people want now."""
    assert expected == act(WAKING._replace(woken_at=NOW - age), 0)


UNFINISHED: dict[str, tuple[dict[str, Any], int, bool]] = {
    "as it was": ({}, 2, True),
    "where nothing is released": ({"rung": IdleRung.WARN}, 2, False),
    "where nothing is said": ({"rung": None}, 2, False),
    "more than fits": ({}, 3, False),
    "of nobody knows what": ({"template": None}, 2, False),
    "started as a whole": ({"way": Way.WORKLOAD, "template": None}, 1, True),
}


@pytest.mark.parametrize(("changes", "replicas", "finished"), UNFINISHED.values(), ids=UNFINISHED)
def test_a_wake_is_finished_where_the_controller_would_wake(
    *, changes: dict[str, Any], replicas: int, finished: bool
) -> None:
    """Whoever may write an owner's note does not make it more than it could be."""
    note = WAKING._replace(replicas=replicas)
    owner = noted(OWNER, note)._replace(**changes)

    assert finished == (done(owner) is not None)


def test_a_wake_is_noted_first() -> None:
    """Note, replicas, note: what was released comes back as it was."""
    free = noted(OWNER, RELEASED)._replace(words=WORDS._replace(wake=WakeBy.WHEN_FREE))
    note = RELEASED._replace(phase=ReleasePhase.WAKING, woken_at=NOW, woken_by="when-free")
    memory = replace(EMPTY, free_since={free.key: NOW - 600})

    assert wake(note, "back with 2 replicas: no pod waits, and there is room") == done(free, memory)


@pytest.mark.parametrize(("number", "replicas"), [(2, "2 replicas"), (1, "1 replica")])
def test_a_release_notes_what_there_was(number: int, replicas: str) -> None:
    """What the owner had is written down before it is taken."""
    note = ReleaseNote(ReleasePhase.RELEASING, NOW, number, WHY)
    expected = Act(
        Step.RELEASE,
        owner_key(),
        "GPUIdleReleased",
        f"released {replicas}: {WHY}; "
        "kubectl gpufence wake -n team-a deployment/worker brings it back",
        note=note,
        done=note._replace(phase=ReleasePhase.RELEASED),
        replicas=0,
        threshold_seconds=900.0,
        uid="uid-of-worker",
        version="7",
    )

    assert expected == release(OWNER._replace(replicas=number))


def test_a_release_keeps_what_is_known_of_earlier_ones() -> None:
    """An owner whose release is contested for the second time has not been forgotten."""
    old = WOKEN._replace(contested=(NOW - 5000,), woken_at=NOW - 5000)
    found = release(OWNER._replace(note=old))

    assert found is not None
    assert old._replace(phase=ReleasePhase.RELEASING, at=NOW, why=WHY) == found.note


FREE = WORDS._replace(wake=WakeBy.WHEN_FREE)
NOTE = ReleaseNote(ReleasePhase.RELEASED, NOW - 600, 1, "idle since 07:00")
RELEASED_OWNER = noted(owner_state(idle_pod(), words=FREE), NOTE)
SAID = "released at 2027-01-15T07:50:00Z: idle since 07:00; "


class Back(NamedTuple):
    """How an owner stands, since when its place is free, and the act that brings it back."""

    standing: Standing
    free_since: float | None
    act: Act | None


def found(
    *pods: PodState,
    owner: OwnerState = RELEASED_OWNER,
    since: float | None = None,
    others: Any = (),
) -> Back:
    free = {} if since is None else {owner.key: since}
    decision = decide(cluster(owner, *others, pods=pods), ReleaseMemory(free_since=free), RULES)
    act = next((each for each in decision.acts if each.key == owner.key), None)
    return Back(decision.standings[owner.key], decision.memory.free_since.get(owner.key), act)


@pytest.mark.parametrize(
    "changes",
    [
        {"words": WORDS},
        {"words": None},
        {"rung": IdleRung.WARN},
        {"words": FREE._replace(problems=(annotation_problem("k", "v", "is bad", "mend it"),))},
    ],
)
def test_who_is_not_said_to_come_back_waits_for_a_person(changes: dict[str, Any]) -> None:
    """The command that brings it back stands beside why it went."""
    item = found(owner=RELEASED_OWNER._replace(**changes))

    assert (
        f"{SAID}kubectl gpufence wake -n team-a deployment/worker brings it back"
        == item.standing.why
    )
    assert (None, None) == item[1:]


def test_who_has_got_an_autoscaler_since_is_that_ones() -> None:
    """Nobody brings back what somebody else scales, or what nobody can read at the moment."""
    why = "ScaledObject by-queue scales it"
    item = found(owner=RELEASED_OWNER._replace(way=Way.NEVER, why_not=why), since=NOW - 900)

    assert (f"{SAID}{why}", None, None) == (item.standing.why, *item[1:])


def test_somebody_who_waits_comes_first() -> None:
    """As long as its place is wanted, the time does not begin."""
    item = found(waiting_pod(), since=NOW - 600)

    assert (
        f"{SAID}not back yet: team-b/job-0 waits for a place that it might take"
        == item.standing.why
    )
    assert (None, None) == item[1:]


def test_a_place_must_stay_free() -> None:
    """Five minutes without anybody are enough, one second less is not."""
    begun, going = found(), found(since=NOW - 299)
    done = found(since=NOW - 300)

    assert (NOW, None) == begun[1:]
    assert f"{SAID}back at 2027-01-15T08:05:00Z if its place stays free" == begun.standing.why
    assert (NOW - 299, None) == going[1:]
    assert done.act is not None
    assert ("wake", done.act.message) == (done.standing.step, done.standing.why)


def test_one_comes_back_after_the_other() -> None:
    """Until the pods of one have their places, nobody knows what is left for the next."""
    note = NOTE._replace(phase=ReleasePhase.WOKEN, woken_at=NOW - 29)
    lately = owner_state(name="other", note=note, replicas=1)
    before = lately._replace(note=note._replace(woken_at=NOW - 30))
    never = lately._replace(note=note._replace(woken_at=None))

    assert None is found(since=NOW - 600, others=[lately]).act
    assert None is not found(since=NOW - 600, others=[before]).act
    assert None is not found(since=NOW - 600, others=[never]).act


def test_a_note_alone_holds_nobody_up() -> None:
    """Who has his places, wants none, or was woken tomorrow is in nobody's way."""
    note = NOTE._replace(phase=ReleasePhase.WOKEN, woken_at=NOW - 29)
    placed = owner_state(idle_pod("o-0"), name="other", note=note)
    leaving = owner_state(idle_pod("o-0", terminating=True), name="other", note=note)
    none = owner_state(name="other", note=note)
    future = owner_state(name="other", note=note._replace(woken_at=NOW + 1), replicas=1)

    assert None is not found(since=NOW - 600, others=[placed]).act
    assert None is found(since=NOW - 600, others=[leaving]).act
    assert None is not found(since=NOW - 600, others=[none]).act
    assert None is not found(since=NOW - 600, others=[future]).act
