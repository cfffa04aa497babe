"""What note and replicas say together, which released owners come back, and who waits for whom."""

from dataclasses import replace
from typing import Any

from controller.model import OwnerState, PodState, Way
from gpufence import names
from gpufence.errors import annotation_problem
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy
from tests.golden.controller.passes import (
    EMPTY,
    GPU,
    JOB,
    Case,
    Cases,
    assert_decided,
    of,
    standings,
    told,
    whole,
    worker,
)
from tests.support.release import (
    NOW,
    WORDS,
    idle_pod,
    node_room,
    noted,
    owner_state,
    pod_state,
    waiting_pod,
)

RELEASING = ReleaseNote(ReleasePhase.RELEASING, NOW - 120, 2, "idle since noon")
RELEASED = RELEASING._replace(phase=ReleasePhase.RELEASED)
WAKING = RELEASED._replace(phase=ReleasePhase.WAKING, woken_at=NOW - 20, woken_by="when-free")
WOKEN = WAKING._replace(phase=ReleasePhase.WOKEN)
EARLIER = RELEASING._replace(woken_at=NOW - 9000, contested=(NOW - 9000,))
BY_KUBECTL = WAKING._replace(woken_by="kubectl")
NOBODYS = WAKING._replace(woken_by="", woken_at=None)
OWNER = owner_state(idle_pod("a"), idle_pod("b"))
FREE = WORDS._replace(wake=WakeBy.WHEN_FREE)


def with_note(note: ReleaseNote, replicas: int | None, **changes: Any) -> Case:
    """Look at an owner of two pods that has this note, and so many replicas."""
    owner = noted(OWNER, note, replicas or 0)._replace(replicas=replicas)
    return of(owner._replace(**changes))


def due(owner: OwnerState) -> Case:
    return of(owner, memory=told(owner))


NOTES: Cases = {
    "released, without replicas": with_note(RELEASED, 0),
    "woken, with replicas": with_note(WOKEN, 2),
    "woken, and scaled down by its people since": with_note(WOKEN, 0),
    "released, of an unknown number": with_note(RELEASED, None),
    "begun to be woken at an unknown time": with_note(NOBODYS, 0),
    "an autoscaler has taken it over": with_note(RELEASING, 2, way=Way.NEVER),
    "a release cut short before the scaling never was": with_note(RELEASING, 2),
    "of a release cut short, earlier ones are still told": with_note(EARLIER, 2),
    "a release cut short after the scaling": with_note(RELEASING, 0),
    "our own wake": with_note(WAKING, 2),
    "a late wake contests nothing": with_note(RELEASED._replace(at=NOW - 3600), 2),
    "a wake soon after a release contests it": with_note(RELEASED, 2),
    "so does one of unknown origin": with_note(NOBODYS, 2),
    "a wake by kubectl contests nothing": with_note(BY_KUBECTL, 2),
    "nor one by kubectl without a time": with_note(BY_KUBECTL._replace(woken_at=None), 2),
    "twice contested in a day": with_note(
        RELEASED._replace(contested=(NOW - 90_000, NOW - 5000)), 2
    ),
    "a wake begun a moment ago is left to finish": with_note(
        WAKING._replace(woken_at=NOW - 9.5), 0
    ),
    "a wake that was begun is finished": with_note(WAKING, 0),
    "after ten minutes it counts as released": with_note(WAKING._replace(woken_at=NOW - 601), 0),
    "no wake is finished where nothing is released": with_note(WAKING, 0, rung=IdleRung.WARN),
    "nor where nothing is said": with_note(WAKING, 0, rung=None),
    "nor of more than fits": with_note(WAKING._replace(replicas=3), 0),
    "nor of an unknown template": with_note(WAKING, 0, template=None),
    "what is started as a whole needs no template": with_note(
        WAKING._replace(replicas=1), 0, way=Way.WORKLOAD, template=None
    ),
    "a wake is noted first": of(
        noted(OWNER, RELEASED)._replace(words=FREE),
        memory=replace(EMPTY, free_since={OWNER.key: NOW - 600}),
    ),
    "a release notes what there was": due(OWNER),
    "a release keeps what is known of earlier ones": due(
        OWNER._replace(note=WOKEN._replace(contested=(NOW - 5000,), woken_at=NOW - 5000))
    ),
}


def test_notes_are_those_reviewed() -> None:
    """Every act is noted first, one cut short is finished or undone, two contests are enough."""
    assert_decided("notes", NOTES, whole)


NOTE = ReleaseNote(ReleasePhase.RELEASED, NOW - 600, 1, "idle since 07:00")
GONE = noted(owner_state(idle_pod(), words=FREE), NOTE)
LATELY = NOTE._replace(phase=ReleasePhase.WOKEN, woken_at=NOW - 29)


def back(
    *pods: PodState,
    owner: OwnerState = GONE,
    since: float = 600,
    others: tuple[Any, ...] = (),
    **more: Any,
) -> Case:
    """Look at a released owner for which there has been room for so long."""
    memory = replace(EMPTY, free_since={owner.key: NOW - since})
    return of(owner, *others, pods=pods, memory=memory, **more)


OTHERS = {
    "lately": owner_state(name="other", note=LATELY, replicas=1),
    "half a minute ago": owner_state(
        name="other", note=LATELY._replace(woken_at=NOW - 30), replicas=1
    ),
    "at an unknown time": owner_state(
        name="other", note=LATELY._replace(woken_at=None), replicas=1
    ),
    "lately, and has its place": owner_state(idle_pod("o-0"), name="other", note=LATELY),
    "lately, and its pod ends": owner_state(
        idle_pod("o-0", terminating=True), name="other", note=LATELY
    ),
    "lately, and wants none": owner_state(name="other", note=LATELY),
    "tomorrow": owner_state(name="other", note=LATELY._replace(woken_at=NOW + 1), replicas=1),
}
ZONE_B = [node_room("node-1"), node_room("node-2", labels={"zone": "b"}, cards=4)]
TO_B = pod_state("t", node="", spec={"nodeSelector": {"zone": "b"}})
BACK: Cases = {
    "without a word a person brings it back": back(owner=GONE._replace(words=WORDS)),
    "nor where its words cannot be read": back(owner=GONE._replace(words=None)),
    "nor where its namespace only warns": back(owner=GONE._replace(rung=IdleRung.WARN)),
    "nor where a word is wrong": back(
        owner=GONE._replace(
            words=FREE._replace(problems=(annotation_problem("k", "v", "bad", "x"),))
        )
    ),
    "nor where it has got an autoscaler since": back(
        owner=GONE._replace(way=Way.NEVER, why_not="ScaledObject by-queue scales it")
    ),
    "a pod that waits comes first": back(waiting_pod()),
    "its place must stay free": back(since=299),
    "for five minutes": back(since=300),
    **{f"another came back {when}": back(others=(other,)) for when, other in OTHERS.items()},
    "it does not fit": back(pod_state("x"), pod_state("y")),
    "not all of it fits": back(owner=GONE._replace(note=NOTE._replace(replicas=3))),
    "a pod waits for more": back(pod_state("x"), waiting_pod(requests={GPU: 2})),
    "a pod waits whose place is not worked out": back(waiting_pod(placement="host ports")),
    "a pod that can never fit does not count": back(waiting_pod(requests={GPU: 3})),
    "a pod that waits for other nodes is not in its way": back(
        waiting_pod(requests={GPU: 2}, spec={"nodeSelector": {"zone": "a"}}),
        owner=GONE._replace(template=TO_B),
        nodes=ZONE_B,
    ),
    "what it would ask for is unknown": back(owner=GONE._replace(template=None)),
}


def test_owners_come_back_as_reviewed() -> None:
    """One after the other, where nobody waits, and where all of it fits."""
    assert_decided("back", BACK, whole)


GPUSHARE = names.GPUSHARE_MEMORY
SHARED = {GPUSHARE: 32, names.GPUSHARE_COUNT: 2}
A, B, WIDE = worker(), worker("b"), worker("w", cards=2)
ONE, FULL = node_room(cards=1), node_room(offered={GPU: 1, "pods": 1})
TWO_NODES = [node_room("node-1"), node_room("node-2")]
ONE_EACH = [node_room(name, cards=1) for name in ("node-1", "node-2")]
ON_BOTH = owner_state(idle_pod("w-0"), idle_pod("w-1", node="node-2"), name="wide")
IN_PAIR = owner_state(idle_pod("a-0", terminating=True), idle_pod("a-1"), name="a")
KEPT = worker("kept", cards=2, node="node-2", words=WORDS._replace(keep_until=NOW + 60))
LEAVING = {
    "is being released": A._replace(note=NOTE._replace(phase=ReleasePhase.RELEASING)),
    "has no replicas any more": A._replace(replicas=0),
    "ends": owner_state(idle_pod("a-0", terminating=True), name="a"),
}
LATE, EARLY = waiting_pod("late", seconds=60), waiting_pod("early", seconds=90)


def on_card(name: str, units: int, index: int, **changes: Any) -> PodState:
    """Build a pod of gpushare on one card, which is idle where that is said."""
    build = idle_pod if changes.pop("idle", False) else pod_state
    annotations = {"ALIYUN_COM_GPU_MEM_IDX": str(index)}
    return build(name, requests={GPUSHARE: units}, annotations=annotations, **changes)


def asks(units: int, name: str = "job-0", **changes: Any) -> PodState:
    return waiting_pod(name, requests={GPUSHARE: units}, **changes)


SHARING = [
    owner_state(on_card(f"{name}-0", 6, index, idle=True), name=name)
    for index, name in enumerate("ab")
]
BUSY_CARDS = (on_card("rest-0", 8, 0), on_card("rest-1", 6, 1))
NOT_YET: dict[str, dict[str, Any]] = {
    "is new": {"seconds": 29.0},
    "does not wait for a node": {"waiting_since": None},
    "ends": {"terminating": True},
    "asks for no GPU": {"gpu": None},
    "has a node": {"node": "node-1"},
    "has a required affinity": {"placement": "a required pod affinity"},
    "has claims": {"spec": {"resourceClaims": [{}]}},
}
WAITING: Cases = {
    "no node takes it": of(A, pods=[waiting_pod()], nodes=[ONE]),
    **{
        f"one that {what} does not wait": of(A, pods=[waiting_pod(**changes)], nodes=[ONE])
        for what, changes in NOT_YET.items()
    },
    "no idle owner": of(
        owner_state(pod_state("b", idle="False", idle_at=NOW), name="b"), pods=[JOB]
    ),
    "the one that has waited longest": of(A, pods=[LATE, EARLY], nodes=[ONE]),
    "one that fits waits for nothing": of(A, pods=[waiting_pod()]),
    "on the card with least left there is room for the next": of(
        owner_state(on_card("a-0", 16, 2, idle=True), name="a"),
        pods=[
            *(on_card("b", 12, 0), on_card("c", 6, 1)),
            *(asks(4, "first", seconds=90), asks(10, "second", seconds=60)),
        ],
        nodes=[node_room(offered={GPUSHARE: 48, names.GPUSHARE_COUNT: 3})],
    ),
    "an idle owner is in the way": of(A, pods=[JOB]),
    "a busy neighbour makes a release useless": of(A, pods=[pod_state("busy"), JOB]),
    "one owner is enough": of(
        A, B, worker("c", cards=2, node="node-2"), pods=[JOB], nodes=TWO_NODES
    ),
    "two together are not asked": of(A, B, pods=[JOB]),
    "what it has elsewhere is of no use": of(ON_BOTH, pods=[JOB], nodes=ONE_EACH),
    "where a place for pods is missing": of(A, pods=[waiting_pod()], nodes=[FULL]),
    "of equal ones the first": of(A, B, pods=[waiting_pod()]),
    "the one that has been idle longest": of(A, worker("b", 60), pods=[waiting_pod()]),
    "fewer pods before more": of(
        *(ON_BOTH, worker(node="node-2")),
        pods=[waiting_pod()],
        nodes=[node_room("node-1", cards=1), node_room("node-2")],
    ),
    "each waiter needs its own": of(A, B, pods=[EARLY, LATE]),
    "what is left over serves the next": of(WIDE, pods=[EARLY, LATE]),
    "what one leaves over spares another": of(
        worker("w", 60, cards=2), A, pods=[EARLY, LATE], nodes=[node_room(cards=3)]
    ),
    "an owner gives the places of all its pods on a node": of(
        owner_state(idle_pod("p-0"), idle_pod("p-1"), name="p"), pods=[JOB]
    ),
    "an owner does not go for its own pod": of(
        owner_state(idle_pod("a-0"), waiting_pod("a-1", namespace="team-a"), name="a"), nodes=[ONE]
    ),
    **{
        f"a place is enough of one that {what}": of(gone, B, pods=[waiting_pod()])
        for what, gone in LEAVING.items()
    },
    "a node must take it": of(
        A, pods=[waiting_pod(requests={GPU: 2}, spec={"nodeSelector": {"zone": "b"}})]
    ),
    "a node must offer what is asked": of(A, pods=[asks(1)]),
    "HAMi's memory is no hindrance": of(
        A, pods=[waiting_pod(requests={GPU: 2, names.HAMI_MEMORY: 6144})]
    ),
    "pods of unknown nodes are passed over": of(
        owner_state(idle_pod("a-0"), idle_pod("a-1", node="gone"), name="a"), pods=[JOB]
    ),
    "what ends is not counted twice": of(
        IN_PAIR, B, pods=[waiting_pod(requests={GPU: 4})], nodes=[node_room(cards=4)]
    ),
    "what ends is counted once": of(
        IN_PAIR, B, pods=[waiting_pod(requests={GPU: 3})], nodes=[node_room(cards=4)]
    ),
    "one that cannot go is named last, and gives nothing": of(
        *(KEPT, worker("able")),
        pods=[waiting_pod("one", seconds=90, requests={GPU: 2}), waiting_pod("two")],
        nodes=[node_room("node-1", cards=1), node_room("node-2")],
    ),
    "what helps no replica helps none of its siblings": of(
        *(A, B),
        pods=[
            *(waiting_pod(f"job-{n}", requests={GPU: 9}, seconds=90) for n in range(3)),
            waiting_pod("small", seconds=60),
        ],
    ),
    "one card must have the room": of(
        *SHARING,
        pods=[*BUSY_CARDS, asks(2, "small"), asks(10, "big")],
        nodes=[node_room(offered=SHARED)],
    ),
}


def test_waiters_are_those_reviewed() -> None:
    """A pod that no node takes waits for the one owner whose release would let it in."""
    assert_decided("waiting", WAITING, standings)
