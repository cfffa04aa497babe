"""What is done about owners in a pass."""

from dataclasses import replace
from typing import Any

import pytest

from controller.decide import decide, refused, released
from controller.model import (
    Announcement,
    ClusterState,
    NoticeGiven,
    OwnerState,
    ReleaseDecision,
    ReleaseMemory,
    ReleaseRules,
    Standing,
    Step,
    Way,
)
from gpufence import names
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy
from tests.support.release import (
    NOW,
    WORDS,
    cluster,
    idle_pod,
    node_room,
    noted,
    owner_key,
    owner_state,
    pod_state,
    waiting_pod,
)

RULES = ReleaseRules()
EMPTY = ReleaseMemory()
KEY = owner_key()
UID = "uid-of-worker"
NOTE = ReleaseNote(ReleasePhase.RELEASED, NOW - 3600, 1, "idle")
IDLE = owner_state(idle_pod())
TOLD = replace(EMPTY, announced={UID: NoticeGiven(Announcement(NOW - 300, NOW))})
EVERYBODY = [owner_state(idle_pod(f"w{i}-0", minutes=40 - 3 * i), name=f"w{i}") for i in range(4)]
ALL_TOLD = replace(
    EMPTY, announced={owner.uid: NoticeGiven(Announcement(NOW - 300, NOW)) for owner in EVERYBODY}
)
BIG = [node_room(cards=8)]


def done(world: ClusterState, memory: ReleaseMemory = EMPTY) -> ReleaseDecision:
    return decide(world, memory, RULES)


def steps(decision: ReleaseDecision) -> list[tuple[str, str]]:
    return [(act.step.value, act.key.name) for act in decision.acts]


def only(world: ClusterState, memory: ReleaseMemory = EMPTY) -> Standing:
    (standing,) = done(world, memory).standings.values()
    return standing


def test_a_busy_owner_is_left_alone() -> None:
    """Who works is not touched, whatever was announced."""
    world = cluster(owner_state(pod_state("worker-0", idle="False", idle_at=NOW)))
    decision = done(world, TOLD)

    assert Standing(KEY, Step.NOTHING, "busy", "pod worker-0 uses its GPU") == only(world, TOLD)
    assert () == decision.acts
    assert {} == decision.memory.announced


def test_an_idle_owner_is_announced() -> None:
    """Its people have five minutes from then, and read how to keep it."""
    decision = done(cluster(IDLE))
    (act,) = decision.acts

    assert (Step.ANNOUNCE, "GPUIdleWarning") == (act.step, act.reason)
    assert (
        "all its pods have been idle since 2027-01-15T07:30:00Z: 1 replica will be released at "
        "2027-01-15T08:05:00Z; kubectl gpufence keep -n team-a deployment/worker keeps it"
    ) == act.message
    assert {UID: NoticeGiven(Announcement(NOW, NOW + 300))} == decision.memory.announced
    assert Standing(
        KEY,
        Step.ANNOUNCE,
        "idle",
        "all its pods have been idle since 2027-01-15T07:30:00Z",
        NOW - 1800,
        NOW + 300,
    ) == only(cluster(IDLE))


def test_an_owner_is_announced_once() -> None:
    """Until its deadline there is nothing more to say."""
    first = done(cluster(IDLE)).memory
    later = done(cluster(IDLE, now=NOW + 299), first)

    assert () == later.acts
    assert first.announced == later.memory.announced
    assert NOW + 300 == later.standings[KEY].deadline


def test_who_is_made_anew_is_announced_anew() -> None:
    """Another owner of the same name, to whom somebody has left the idle pods, was told nothing."""
    anew = IDLE._replace(uid="another")
    decision = done(cluster(anew), TOLD)

    assert [("announce", "worker")] == steps(decision)
    assert {"another": NoticeGiven(Announcement(NOW, NOW + 300))} == decision.memory.announced


def test_an_announced_owner_is_released_at_its_deadline() -> None:
    """Note and replicas change as long as it is still the one that was decided on."""
    world = cluster(IDLE, now=NOW + 300)
    decision = done(world, done(cluster(IDLE)).memory)
    (act,) = decision.acts

    assert Step.RELEASE == act.step == decision.standings[KEY].step
    assert ("uid-of-worker", "7", 0, 900.0) == (
        act.uid,
        act.version,
        act.replicas,
        act.threshold_seconds,
    )
    assert "all its pods have been idle since 2027-01-15T07:30:00Z" == decision.standings[KEY].why


def test_an_owner_that_is_not_due_yet_shows_its_deadline() -> None:
    """Long before it goes, one reads when that will be."""
    standing = only(cluster(owner_state(idle_pod(minutes=5))))

    assert (Step.NOTHING, NOW + 600) == (standing.step, standing.deadline)


def test_a_namespace_that_only_warns_loses_nobody() -> None:
    """The Event says what would be, and at the deadline nothing happens."""
    owner = IDLE._replace(rung=IdleRung.WARN)
    (act,) = done(cluster(owner)).acts
    later = done(cluster(owner, now=NOW + 900), done(cluster(owner)).memory)

    assert (
        "all its pods have been idle since 2027-01-15T07:30:00Z: 1 replica would be released at "
        "2027-01-15T08:05:00Z; nothing is done at it, since gpufence.io/idle is warn"
    ) == act.message
    assert () == later.acts
    assert later.standings[KEY].why.endswith(
        "nothing is done at it, since gpufence.io/idle is warn"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"rung": None},
            (
                "its namespace has no label gpufence.io/idle of report, warn or release: "
                "it is only measured"
            ),
        ),
        ({"rung": IdleRung.REPORT}, "gpufence.io/idle is only report here"),
        ({"way": Way.NEVER, "why_not": "it is a bare pod"}, "it is a bare pod"),
    ],
)
def test_who_stays_is_only_shown(changes: dict[str, Any], why: str) -> None:
    """Idle owners that may not be released are not announced either."""
    decision = done(cluster(IDLE._replace(**changes)), TOLD)

    assert () == decision.acts
    assert Standing(KEY, Step.NOTHING, "idle", why, NOW - 1800) == decision.standings[KEY]


def test_why_somebody_is_never_released_is_said_while_it_works() -> None:
    """People need not wait until it is idle to learn so."""
    pod = pod_state("worker-0", idle="False")
    owner = owner_state(pod, way=Way.NEVER, why_not="it is a bare pod")

    assert "pod worker-0 uses its GPU; it is a bare pod" == only(cluster(owner)).why


def test_what_is_kept_is_shown_as_kept() -> None:
    """A person's word has a state of its own, a warm-up has none."""
    kept = IDLE._replace(words=WORDS._replace(keep_until=NOW + 3600))
    warm = owner_state(idle_pod(ready_at=NOW - 400))

    assert ("kept", NOW + 3600) == (only(cluster(kept)).state, only(cluster(kept)).deadline)
    assert ("idle", NOW + 500) == (only(cluster(warm)).state, only(cluster(warm)).deadline)


def test_what_is_kept_is_so_whatever_else_stands_against_a_release() -> None:
    """An owner that would go for a waiting pod only says that, and that it is kept."""
    words = WORDS._replace(keep_until=NOW + 3600, wake=WakeBy.WHEN_FREE)
    standing = only(cluster(IDLE._replace(words=words)))

    assert "kept" == standing.state
    assert standing.why.startswith("it is to be kept until 2027-01-15T09:00:00Z; it comes back")


def test_somebody_who_waits_hurries() -> None:
    """NoticeGiven anew with a minute's half, released after it, and people read for whom."""
    job = waiting_pod(requests={names.NVIDIA_GPU: 2})
    told = replace(EMPTY, announced={UID: NoticeGiven(Announcement(NOW - 10, NOW + 290))})
    first = done(cluster(IDLE, pods=[job]), told)
    second = done(cluster(IDLE, pods=[job], now=NOW + 30), first.memory)
    standing = second.standings[KEY]

    assert [("announce", "worker")] == steps(first)
    assert NOW + 30 == first.standings[KEY].deadline
    assert [("release", "worker")] == steps(second)
    assert (True, ("team-b/job-0",)) == (standing.contended, standing.waiters)
    assert standing.why.endswith(", and team-b/job-0 waits for their GPUs")


def test_a_waiter_that_comes_and_goes_delays_nobody() -> None:
    """
    Somebody who waited while an owner was still warm, and went again just before its time, has
    neither put it off nor taken its notice away.
    """
    warm = owner_state(idle_pod(minutes=10, ready_at=NOW - 600))
    job = waiting_pod(requests={names.NVIDIA_GPU: 2})
    memory, told = EMPTY, []
    for later in range(0, 301, 10):
        pods = [job] if later < 280 else []
        decision = done(cluster(warm, pods=pods, now=NOW + later), memory)
        memory = decision.memory
        told += [(later, act.step) for act in decision.acts]

    assert [(0, Step.ANNOUNCE), (300, Step.RELEASE)] == told


def test_who_was_hurried_for_nobody_goes_at_its_own_time() -> None:
    """
    A release that was brought forward for a waiter, did not come about, and is wanted by nobody
    any more is due when it always was.
    """
    owner = owner_state(idle_pod(minutes=9.5))
    job = waiting_pod(requests={names.NVIDIA_GPU: 2})
    memory, told = EMPTY, []
    for later in range(0, 331, 10):
        pods = [job] if later < 100 else []
        decision = done(cluster(owner, pods=pods, now=NOW + later), memory)
        memory = decision.memory
        told += [(later, act.step) for act in decision.acts]

    assert [(0, Step.ANNOUNCE), (30, Step.RELEASE)] == told[:2]
    assert [(330, Step.RELEASE)] == [each for each in told if each[0] >= 100]


def test_three_go_in_a_minute_and_the_fourth_waits() -> None:
    """The longest idle go first, and who is next reads why."""
    late = owner_state(idle_pod("w4-0", minutes=60), name="w4")
    told = replace(
        ALL_TOLD,
        announced={**ALL_TOLD.announced, late.uid: NoticeGiven(Announcement(NOW - 300, NOW))},
    )
    decision = done(cluster(*EVERYBODY, late, nodes=BIG), told)

    assert [("release", "w4"), ("release", "w0"), ("release", "w1")] == steps(decision)
    assert "its time is up, but only 3 owners go in a minute" == (
        decision.standings[owner_key("w2")].why
    )


def test_who_was_refused_does_not_hold_up_others() -> None:
    """The last look's word is shown, and the next one goes."""
    memory = refused(ALL_TOLD, owner_key("w0"), "pod w0-0 is busy", NOW - 2)
    memory = released(memory, owner_key("gone"), NOW - 30)
    decision = done(cluster(*EVERYBODY, nodes=BIG), memory)

    assert [("release", "w1"), ("release", "w2")] == steps(decision)
    assert "release was called off a moment ago: pod w0-0 is busy" == (
        decision.standings[owner_key("w0")].why
    )


def test_nothing_is_done_by_old_news() -> None:
    """While a watch is silent nobody is announced, released or noted, and nothing is forgotten."""
    half = IDLE._replace(note=NOTE._replace(phase=ReleasePhase.RELEASING), replicas=0)
    decision = done(cluster(half, fresh=False), TOLD)
    why = "what is known of the cluster is too old"

    assert () == decision.acts
    assert TOLD == decision.memory
    assert why == decision.brake
    assert {KEY: Standing(KEY, Step.NOTHING, "unknown", why)} == decision.standings


def test_a_suspension_stops_and_announces_anew() -> None:
    """While it is doubtful who is idle nobody goes, and afterwards everybody is told again."""
    during = done(cluster(IDLE), replace(TOLD, suspended_until=NOW + 60))
    after = done(cluster(IDLE, now=NOW + 60), during.memory)

    assert () == during.acts
    assert "most pods that are measured turned idle at once" in during.brake
    assert [("announce", "worker")] == steps(after)


def test_an_act_cut_short_is_finished_first() -> None:
    """Notes come before everything else, and an owner has one act in a pass."""
    half = noted(IDLE, NOTE._replace(phase=ReleasePhase.RELEASING))
    woken = owner_state(idle_pod("o-0"), name="other", note=NOTE, replicas=1)
    decision = done(cluster(half, woken), refused(TOLD, KEY, "the API server did not answer", NOW))

    assert [("note-released", "worker"), ("note-woken", "other")] == steps(decision)
    assert "what is noted of its release is brought up to date" == decision.standings[KEY].why


def test_owners_without_replicas_are_nobodys_business() -> None:
    """What its people scaled down is not shown, and not woken."""
    never = owner_state(name="never")
    since = noted(owner_state(name="since"), NOTE._replace(phase=ReleasePhase.WOKEN))

    assert {} == done(cluster(never, since)).standings


def test_one_comes_back_in_a_pass() -> None:
    """When the place of two is free, one of them takes it."""
    words = WORDS._replace(wake=WakeBy.WHEN_FREE)
    owners = [noted(owner_state(name=name, words=words), NOTE) for name in ("a", "b")]
    first = done(cluster(*owners))
    second = done(cluster(*owners, now=NOW + 300), first.memory)

    assert () == first.acts
    assert {owner.key: NOW for owner in owners} == first.memory.free_since
    assert [("wake", "a")] == steps(second)


def test_what_the_api_server_refuses_is_not_asked_at_once_again() -> None:
    """A wake that failed a moment ago waits, and its standing says why."""
    owner = noted(owner_state(words=WORDS._replace(wake=WakeBy.WHEN_FREE)), NOTE)
    free = replace(EMPTY, free_since={KEY: NOW - 600})
    decision = done(cluster(owner), refused(free, KEY, "forbidden", NOW - 5))

    assert () == decision.acts
    assert "wake was called off a moment ago: forbidden" == decision.standings[KEY].why
    assert [("wake", "worker")] == steps(done(cluster(owner), free))


def test_a_released_owner_is_shown() -> None:
    """Who went is not forgotten."""
    standing = only(cluster(noted(IDLE, NOTE)))

    assert ("released", Step.NOTHING) == (standing.state, standing.step)
    assert standing.why.endswith("kubectl gpufence wake -n team-a deployment/worker brings it back")


def owner_of(*pods: str) -> OwnerState:
    return owner_state(*[idle_pod(name) for name in pods])


def test_all_replicas_go_together() -> None:
    """An owner is released as a whole."""
    owner = owner_of("worker-0", "worker-1")
    memory = done(cluster(owner)).memory
    (act,) = done(cluster(owner, now=NOW + 300), memory).acts

    assert act.note is not None
    assert 2 == act.note.replicas
