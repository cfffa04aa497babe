"""What stops releases that are due, and what ten thousand of them cost."""

from dataclasses import replace

import pytest

from controller.decide import decide, refused, released
from controller.model import (
    Announcement,
    ClusterState,
    NoticeGiven,
    OwnerState,
    ReleaseMemory,
    ReleaseRules,
    Step,
)
from gpufence.idle import ReleaseNote, ReleasePhase
from tests.support.observing import calls
from tests.support.release import NOW, cluster, idle_pod, owner_key, owner_state, pod_state

RULES = ReleaseRules()
EMPTY = ReleaseMemory()


def idle_for(seconds: float, name: str) -> OwnerState:
    """Build an owner whose only pod was called idle so many seconds ago."""
    return owner_state(idle_pod(f"{name}-0", idle_at=NOW - seconds), name=name)


def working(name: str) -> OwnerState:
    return owner_state(pod_state(f"{name}-0", idle="False", idle_at=NOW - 600), name=name)


def after(world: ClusterState, memory: ReleaseMemory = EMPTY) -> ReleaseMemory:
    """Return what is remembered after a pass."""
    return decide(world, memory, RULES).memory


def going(
    world: ClusterState, memory: ReleaseMemory = EMPTY, rules: ReleaseRules = RULES
) -> list[str]:
    """Return which of four owners go that are due in this world besides."""
    due = [owner_state(idle_pod(f"{name}-0"), name=name) for name in ("a", "b", "c", "d")]
    told = {owner.uid: NoticeGiven(Announcement(NOW - 300, NOW)) for owner in due}
    both = world._replace(
        owners={**world.owners, **{owner.key: owner for owner in due}},
        pods=(*world.pods, *(pod for owner in due for pod in owner.pods)),
    )
    acts = decide(both, replace(memory, announced=told), rules).acts
    return [act.key.name for act in acts if act.step is Step.RELEASE]


def suspended_until(world: ClusterState, memory: ReleaseMemory = EMPTY) -> float:
    return after(world, memory).suspended_until


def test_most_pods_turning_idle_at_once_suspends() -> None:
    """Four of five within a minute is doubtful for an hour, three of five is not."""
    turned = [idle_for(10.0 * place, f"w{place}") for place in range(4)]
    world = cluster(*turned, working("x"))

    assert NOW + 3600 == suspended_until(world)
    assert 0.0 == suspended_until(cluster(*turned[:3], working("x"), working("y")))


def test_few_pods_tell_nothing() -> None:
    """Of fewer than five measured pods all may turn idle."""
    assert 0.0 == suspended_until(cluster(*[idle_for(10, f"w{place}") for place in range(4)]))


def test_one_queue_that_is_empty_is_no_fault() -> None:
    """All pods of one owner turn idle together whenever there is nothing to do."""
    pods = [idle_pod(f"w-{place}", idle_at=NOW - 10) for place in range(8)]
    alone = [idle_pod(f"x-{place}", idle_at=NOW - 10) for place in range(8)]

    assert 0.0 == suspended_until(cluster(owner_state(*pods)))
    assert NOW + 3590 == suspended_until(cluster(pods=alone))


def test_pods_that_turn_idle_one_by_one_are_believed() -> None:
    """What did not happen within a minute did not happen at once."""
    two = owner_state(*[idle_pod(f"x-{i}", idle_at=NOW - 70.0 * i) for i in range(2)], name="x")
    near = owner_state(*[idle_pod(f"y-{i}", idle_at=NOW - 30.0 * i) for i in range(5)], name="y")

    assert 0.0 == suspended_until(cluster(*[idle_for(30.0 * i, f"w{i}") for i in range(6)]))
    assert 0.0 == suspended_until(cluster(two, near))


def test_a_new_leader_sees_what_happened_before() -> None:
    """Conditions tell when pods turned idle, for as long as that matters."""
    lately = [idle_for(1800, f"w{place}") for place in range(5)]
    long_ago = [idle_for(4000, f"w{place}") for place in range(5)]

    assert NOW + 1800 == suspended_until(cluster(*lately))
    assert 0.0 == suspended_until(cluster(*long_ago))


def test_agents_that_start_anew_do_not_suspend() -> None:
    """A pod that was idle before nobody knew has not turned; one that was busy before has."""
    idle = [idle_for(7200, f"w{place}") for place in range(6)]
    unknown = [
        owner._replace(pods=(owner.pods[0]._replace(idle="Unknown", idle_at=NOW),))
        for owner in idle
    ]
    again = [owner._replace(pods=(owner.pods[0]._replace(idle_at=NOW),)) for owner in idle]
    busy = [
        owner._replace(pods=(owner.pods[0]._replace(idle="False", idle_at=NOW - 60),))
        for owner in idle
    ]
    memory = after(cluster(*unknown), after(cluster(*idle)))
    after_work = after(cluster(*unknown), after(cluster(*busy)))

    assert 0.0 == suspended_until(cluster(*again), memory)
    assert NOW + 3600 == suspended_until(cluster(*again), after_work)


def test_a_suspension_is_not_shortened() -> None:
    """What was doubtful stays so for its time, whatever the pods do next."""
    memory = replace(EMPTY, suspended_until=NOW + 100)

    assert NOW + 100 == suspended_until(cluster(working("x")), memory)


def test_only_living_pods_are_remembered() -> None:
    """Memory does not grow with pods that are gone."""
    memory = after(cluster(idle_for(10, "a")))
    unmeasured = owner_state(idle_pod("b-0", idle_at=None), name="b")

    assert {"uid-of-a-0"} == memory.idle
    assert {"uid-of-a-0": NOW - 10} == memory.turned_idle
    assert {} == after(cluster(), memory).turned_idle
    assert {} == after(cluster(unmeasured)).turned_idle


@pytest.mark.parametrize(
    ("fresh", "until", "text"),
    [
        (True, 0.0, ""),
        (False, 0.0, "what is known of the cluster is too old"),
        (True, NOW + 60, "turned idle at once, which is doubtful: until 2027-01-15T08:01:00Z"),
        (True, NOW, ""),
    ],
)
def test_a_brake_says_why(*, fresh: bool, until: float, text: str) -> None:
    """Old news and a suspension stop everybody."""
    said = decide(cluster(fresh=fresh), replace(EMPTY, suspended_until=until), RULES).brake

    assert bool(text) == bool(said)
    assert said.endswith(text)


def test_three_go_in_a_minute() -> None:
    """What is remembered and what is noted count together, each owner once."""
    note = ReleaseNote(ReleasePhase.RELEASED, NOW - 30, 1, "idle")
    gone = owner_state(name="gone", note=note)
    old = owner_state(name="old", note=note._replace(at=NOW - 60))
    memory = released(EMPTY, gone.key, NOW - 30)

    assert 3 == len(going(cluster(old)))
    assert 2 == len(going(cluster(gone, old)))
    assert 2 == len(going(cluster(gone), memory))
    assert 1 == len(going(cluster(gone), released(memory, owner_key("x"), NOW)))
    assert 0 == len(going(cluster(gone), memory, ReleaseRules(per_minute=0)))


@pytest.mark.parametrize(
    ("began", "at", "left"),
    [(-59, -30, 2), (-60, -30, 3), (-59, 1, 3), (-59, 0, 2)],
)
def test_notes_that_people_write_hold_nobody_up(began: float, at: float, left: int) -> None:
    """
    They count in a leader's first minute, for what he does not remember, and never before their
    time.
    """
    note = ReleaseNote(ReleasePhase.RELEASED, NOW + at, 1, "forged")
    world = cluster(owner_state(name="forged", note=note))

    assert left == len(going(world, replace(EMPTY, began=NOW + began)))


def test_a_leader_remembers_when_he_began() -> None:
    """The first pass sets it, the next ones leave it."""
    first = after(cluster())

    assert NOW == first.began
    assert NOW == after(cluster(now=NOW + 2), first).began


def test_releases_are_forgotten_after_a_minute() -> None:
    """Memory keeps what counts."""
    memory = released(EMPTY, owner_key("old"), NOW - 61)

    assert {owner_key("new"): NOW} == released(memory, owner_key("new"), NOW).released


def test_who_was_refused_lets_others_go_first() -> None:
    """For ten seconds the last look's word stands."""
    lately = refused(EMPTY, owner_key("a"), "pod a-0 is busy", NOW - 5)
    before = refused(EMPTY, owner_key("a"), "pod a-0 is busy", NOW - 10)

    assert ["b", "c", "d"] == going(cluster(), lately)
    assert ["a", "b", "c"] == going(cluster(), before)
    assert [owner_key("b")] == list(refused(lately, owner_key("b"), "", NOW + 5).refused)


def owners(number: int, *, idle: int) -> list[OwnerState]:
    return [
        owner_state(
            idle_pod(f"w{at}-0", minutes=600) if at < idle else pod_state(f"w{at}-0", idle="False"),
            name=f"w{at}",
        )
        for at in range(number)
    ]


def test_each_of_ten_thousand_owners_has_its_standing() -> None:
    """Every owner is judged in one pass, and no busy one is touched."""
    decision = decide(cluster(*owners(10_000, idle=10)), ReleaseMemory(), RULES)

    assert 10_000 == len(decision.standings)
    assert {f"w{at}" for at in range(10)} >= {act.key.name for act in decision.acts}
    assert decision.acts


def test_a_pass_grows_with_its_owners_alone() -> None:
    """Ten times the owners, all of them idle, take ten times the calls and hardly more."""
    few, many = (cluster(*owners(number, idle=number)) for number in (1_000, 10_000))
    once = calls(lambda: decide(few, ReleaseMemory(), RULES))

    assert calls(lambda: decide(many, ReleaseMemory(), RULES)) < 11 * once
