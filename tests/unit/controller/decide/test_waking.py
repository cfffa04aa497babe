"""Which released owners come back by themselves."""

from typing import Any, NamedTuple

import pytest

from controller.decide import decide
from controller.model import Act, OwnerState, PodState, ReleaseMemory, Standing, Way
from controller.rules import ReleaseRules
from gpufence.errors import annotation_problem
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy
from tests.support.release import (
    NOW,
    WORDS,
    cluster,
    idle_pod,
    noted,
    owner_state,
    waiting_pod,
)

RULES = ReleaseRules()
FREE = WORDS._replace(wake=WakeBy.WHEN_FREE)
NOTE = ReleaseNote(ReleasePhase.RELEASED, NOW - 600, 1, "idle since 07:00")
OWNER = noted(owner_state(idle_pod(), words=FREE), NOTE)
SAID = "released at 2027-01-15T07:50:00Z: idle since 07:00; "


class Back(NamedTuple):
    """How an owner stands, since when its place is free, and the act that brings it back."""

    standing: Standing
    free_since: float | None
    act: Act | None


def found(
    *pods: PodState, owner: OwnerState = OWNER, since: float | None = None, others: Any = ()
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
    item = found(owner=OWNER._replace(**changes))

    assert (
        f"{SAID}kubectl gpufence wake -n team-a deployment/worker brings it back"
        == item.standing.why
    )
    assert (None, None) == item[1:]


def test_who_has_got_an_autoscaler_since_is_that_ones() -> None:
    """Nobody brings back what somebody else scales, or what nobody can read at the moment."""
    why = "ScaledObject by-queue scales it"
    item = found(owner=OWNER._replace(way=Way.NEVER, why_not=why), since=NOW - 900)

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
