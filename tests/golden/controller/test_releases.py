"""When idle owners are announced and released, and what stands against it."""

from dataclasses import replace

import pytest

from controller.decide import decide, refused, released
from controller.model import (
    Announcement,
    NoticeGiven,
    OwnerState,
    PodState,
    ReleaseRules,
    Step,
    Way,
)
from gpufence import names
from gpufence.errors import annotation_problem
from gpufence.event_text import MOST_HELP_URL, MOST_TEXT, Anchor, shortened, with_link
from gpufence.idle import IdleRung, ReleaseNote, ReleasePhase, WakeBy, WithoutGpu
from gpufence.pods import ClaimUse
from tests.golden.controller.passes import (
    EMPTY,
    JOB,
    Case,
    Cases,
    assert_decided,
    at,
    of,
    standings,
    told,
    whole,
    worker,
)
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

NOTE = ReleaseNote(ReleasePhase.RELEASED, NOW - 3600, 1, "idle")
IDLE = owner_state(idle_pod())
TOLD = told(IDLE)
BUSY = pod_state("busy", idle="False", idle_at=NOW - 60)
WARNED = IDLE._replace(rung=IdleRung.WARN)
WARM = owner_state(idle_pod(minutes=10, ready_at=NOW - 600))
SOON = owner_state(idle_pod(minutes=9.5))
FREE = WORDS._replace(wake=WakeBy.WHEN_FREE)
EVERYBODY = [worker(f"w{place}", minutes=40 - 3 * place) for place in range(4)]
LATE = worker("w4", minutes=60)
BIG = [node_room(cards=8)]
HALF = noted(IDLE, NOTE._replace(phase=ReleasePhase.RELEASING))
WOKEN = owner_state(idle_pod("o-0"), name="other", note=NOTE, replicas=1)
BACK = [noted(owner_state(name=name, words=FREE), NOTE) for name in ("a", "b")]


def looks(owner: OwnerState, waits: tuple[float, ...], then: tuple[float, ...]) -> Case:
    """Look at an owner at these moments while a job waits, and at those when it is gone."""
    worlds = [cluster(owner, pods=[JOB], now=NOW + later) for later in waits]
    return at(*worlds, *(cluster(owner, now=NOW + later) for later in then))


RELEASES: Cases = {
    "a busy owner is left alone, whatever was announced": of(owner_state(BUSY), memory=TOLD),
    "an idle owner is announced once, and released at its deadline": at(
        *(cluster(IDLE, now=NOW + later) for later in (0, 299, 300))
    ),
    "one made anew under the same name is announced anew": of(
        IDLE._replace(uid="another"), memory=TOLD
    ),
    "long before it goes its deadline is shown": of(owner_state(idle_pod(minutes=5))),
    "in a namespace that only warns nothing is released": at(
        cluster(WARNED), cluster(WARNED, now=NOW + 900)
    ),
    "without a label it is only measured": of(IDLE._replace(rung=None), memory=TOLD),
    "where it is only reported nothing is announced": of(
        IDLE._replace(rung=IdleRung.REPORT), memory=TOLD
    ),
    "why it is never released is said while it works": of(
        owner_state(BUSY, way=Way.NEVER, why_not="it is a bare pod")
    ),
    "a pod that waits brings the release forward": at(
        cluster(IDLE, pods=[JOB]),
        cluster(IDLE, pods=[JOB], now=NOW + 30),
        memory=told(IDLE, at=NOW - 10, deadline=NOW + 290),
    ),
    "a waiter that comes and goes delays nothing": looks(WARM, (0, 10, 270), (280, 290, 300)),
    "brought forward for a waiter that is gone, it goes at its own time": looks(
        SOON, (0, 30, 90), (100, 320, 330)
    ),
    "the longest idle go first, three in a minute": of(
        *EVERYBODY, LATE, nodes=BIG, memory=told(*EVERYBODY, LATE)
    ),
    "one called off does not hold up others": of(
        *EVERYBODY,
        nodes=BIG,
        memory=released(
            refused(told(*EVERYBODY), owner_key("w0"), "pod w0-0 is busy", NOW - 2),
            owner_key("gone"),
            NOW - 30,
        ),
    ),
    "nothing is done by old news, and nothing forgotten": of(HALF, fresh=False, memory=TOLD),
    "a suspension stops, and announces anew": at(
        cluster(IDLE), cluster(IDLE, now=NOW + 60), memory=replace(TOLD, suspended_until=NOW + 60)
    ),
    "an act cut short is finished first": of(
        HALF, WOKEN, memory=refused(TOLD, HALF.key, "the API server did not answer", NOW)
    ),
    "owners without replicas have no standing": of(
        owner_state(name="never"),
        noted(owner_state(name="since"), NOTE._replace(phase=ReleasePhase.WOKEN)),
    ),
    "one comes back in a pass": at(cluster(*BACK), cluster(*BACK, now=NOW + 300)),
    "what the API server refuses is not asked at once again": of(
        BACK[0],
        memory=refused(
            replace(EMPTY, free_since={BACK[0].key: NOW - 600}), BACK[0].key, "forbidden", NOW - 5
        ),
    ),
}


def test_releases_are_those_reviewed() -> None:
    """What is done in each pass, how owners stand, and what is remembered are as in the file."""
    assert_decided("releases", RELEASES, whole)


def due(deadline: float, given: NoticeGiven | None, *pods: PodState, now: float = NOW) -> Case:
    """Look at an owner that goes then, of which this was said."""
    owner = worker(minutes=(NOW + 900 - deadline) / 60)
    memory = EMPTY if given is None else replace(EMPTY, announced={owner.uid: given})
    return of(owner, pods=pods, now=now, memory=memory)


def usual(said: float, deadline: float) -> NoticeGiven:
    return NoticeGiven(Announcement(NOW + said, NOW + deadline))


ANNOUNCED = {
    "five minutes and a second ahead": (301, None),
    "five minutes ahead": (300, None),
    "overdue": (-600, None),
    "as announced": (100, usual(-200, 100)),
    "sooner than announced": (-600, usual(-200, 100)),
    "overdue since it was announced": (-600, usual(-500, -200)),
    "much later than announced": (500, usual(-100, 200)),
    "a little later than announced": (250, usual(-40, 200)),
    "announced yesterday": (250, usual(-80_000, -79_700)),
}
REPORTED = worker("a", 60, rung=IdleRung.REPORT)
KEPT = worker("b", 60, words=WORDS._replace(keep_until=NOW + 60))
HURRIED = NoticeGiven(Announcement(NOW - 100, NOW + 200), Announcement(NOW, NOW + 30))
DEADLINES: Cases = {
    **{f"it goes {name}": due(NOW + at, given) for name, (at, given) in ANNOUNCED.items()},
    "where a pod waits an owner goes sooner": of(worker(minutes=10), pods=[JOB]),
    "one that would be back has no time of its own": of(worker(minutes=10, words=FREE)),
    "one that would be back goes for others": of(worker(minutes=10, words=FREE), pods=[JOB]),
    "a waiter shortens the notice": due(NOW + 50, usual(-250, 50), JOB),
    "a waiter puts off nothing": due(NOW + 50, usual(-250, 50), JOB, now=NOW + 25),
    "brought forward for a waiter": due(NOW + 200, usual(-100, 200), JOB),
    "brought forward it stays so": due(NOW + 200, HURRIED, JOB, now=NOW + 10),
    "what was said before a pod waited holds again": due(NOW + 200, HURRIED, now=NOW + 20),
    "those that can go are asked before those that are reported": of(
        REPORTED, worker("c", 10), pods=[waiting_pod()]
    ),
    "those that can go are asked before those that are kept": of(
        KEPT, worker("c", 10), pods=[waiting_pod()]
    ),
    "where no other is of help one that stays is waited for": of(
        REPORTED._replace(words=None), KEPT, pods=[waiting_pod()]
    ),
}


def test_deadlines_are_those_reviewed() -> None:
    """An announcement stands as long as it is true, and a waiter brings a release forward."""
    assert_decided("deadlines", DEADLINES, whole)


SETUP = [{"name": "setup", "resources": {"limits": {names.NVIDIA_GPU: "1"}}}]
BESIDE = {
    "a pod without a GPU elsewhere": pod_state("cpu", gpu=None, node="cpu-node"),
    "a pod without a GPU on no node": pod_state("cpu", gpu=None, node="", waiting_since=NOW - 60),
    "a GPU in init containers only": idle_pod("setup", limits={}, spec={"initContainers": SETUP}),
    "init containers that run": idle_pod("loader", initializing=True),
}
IGNORING = WORDS._replace(without_gpu=WithoutGpu.IGNORE)
PODS: dict[str, tuple[PodState, ...]] = {
    "the last of its pods counts": (idle_pod("a", minutes=40), idle_pod("b", minutes=10)),
    "one that works is enough": (idle_pod("a"), BUSY),
    "work counts before what is unknown": (pod_state("b", idle="Unknown"), BUSY),
    "one that is unknown is enough": (idle_pod("a"), pod_state("b", idle="Unknown")),
    "one that says nothing yet": (idle_pod("a"), pod_state("b")),
    "one whose idleness has no time": (pod_state("b", idle="True"),),
    "no pod": (),
    "a pod that waits": (waiting_pod("a"),),
    "a pod that ends": (idle_pod("a", terminating=True),),
    "pods that end say nothing": (
        idle_pod(),
        pod_state("ending", idle="False", terminating=True),
        pod_state("leader", gpu=None, terminating=True),
    ),
    "a sidecar with a GPU stays": (
        idle_pod(
            "a", limits={}, spec={"initContainers": [{**SETUP[0], "restartPolicy": "Always"}]}
        ),
    ),
    "an annotation is a GPU as well": (
        idle_pod(
            "a", limits={}, annotations={"gpu-fraction": "0.5"}, spec={"initContainers": SETUP}
        ),
    ),
    "since it waits a pod does nothing": (
        idle_pod("a", minutes=60),
        waiting_pod("b", seconds=120),
    ),
    "the youngest that is ready warms up": (idle_pod("a"), idle_pod("b", ready_at=NOW - 600)),
    "one never ready warms up since it is idle": (idle_pod("a", ready_at=None, minutes=10),),
    **{f"beside: {name}": (idle_pod("a"), pod) for name, pod in BESIDE.items()},
}
CAME_BACK = ReleaseNote(ReleasePhase.WOKEN, NOW - 7200, 1, "idle", woken_at=NOW - 600)
AGAINST = {
    "nothing": {},
    "its way has a reason": {"way": Way.NEVER, "why_not": "HorizontalPodAutoscaler web scales it"},
    "its way has none": {"way": Way.NEVER},
    "its namespace says nothing": {"rung": None},
    "its words cannot be read": {"words": None},
    "its replicas cannot be read": {"replicas": None},
    "a word is wrong": {
        "words": WORDS._replace(problems=(annotation_problem("k", "v", "is bad", "mend it"),))
    },
    "its budget lets one go": {"budget": 1},
    "its budget lets both go": {"budget": 2},
    "it comes back by itself": {"words": FREE},
    "it is to be kept": {"words": WORDS._replace(keep_until=NOW + 3600)},
    "it is to be kept for less than its notice": {"words": WORDS._replace(keep_until=NOW + 400)},
    "it is to be kept, and comes back by itself": {"words": FREE._replace(keep_until=NOW + 3600)},
    "it was to be kept": {"words": WORDS._replace(keep_until=NOW - 1)},
    "it came back a while ago": {"note": CAME_BACK},
    "it came back long ago": {
        "note": CAME_BACK._replace(woken_at=NOW - 3600, left_alone_until=NOW - 1)
    },
    "it came back at an unknown time": {"note": CAME_BACK._replace(woken_at=None)},
    "its release was contested": {"note": CAME_BACK._replace(left_alone_until=NOW + 7200)},
}


def claiming() -> PodState:
    """Build a pod that uses a resource claim, and whose init container asks for a GPU."""
    pod = idle_pod("b", limits={}, spec={"initContainers": SETUP})
    assert pod.gpu is not None
    (early, regular) = pod.gpu.containers
    containers = (early, regular._replace(claims=(ClaimUse("gpu"),)))
    return pod._replace(gpu=pod.gpu._replace(containers=containers))


STANDINGS: Cases = {
    **{
        f"pods: {name}": of(owner_state(*pods, replicas=max(len(pods), 1)))
        for name, pods in {**PODS, "a claim is a GPU as well": (claiming(),)}.items()
    },
    **{
        f"pods without a GPU are ignored: {name}, {other.name}": of(
            owner_state(other, pod, words=IGNORING)
        )
        for name, pod in BESIDE.items()
        for other in (idle_pod("a"), BUSY)
    },
    **{
        f"against a release: {name}": of(
            owner_state(idle_pod("a"), idle_pod("b"))._replace(**changes)  # type: ignore[arg-type]  # any field
        )
        for name, changes in AGAINST.items()
    },
}


def test_standings_are_those_reviewed() -> None:
    """Since when all pods of an owner are idle, what is unknown, and what stands against it."""
    assert_decided("standings", STANDINGS, standings)


HELP_URL = "https://wiki.example.com/".ljust(MOST_HELP_URL, "x")


@pytest.mark.parametrize("name", ["w" * 63, "w" * 253, "evil\x1b[2J\u202e<script>"])
def test_whatever_it_is_called_an_event_of_a_release_ends_with_its_command(name: str) -> None:
    """The longest names of pods that wait leave room for when it goes, and for what to type."""
    pods = [idle_pod("x-0")]
    owner = owner_state(*pods, name=name, replicas=10**30)
    waiter = waiting_pod("p" * 253, namespace="n" * 63, requests={names.NVIDIA_GPU: 2})
    told = {owner.uid: NoticeGiven(Announcement(NOW - 300, NOW))}
    world = cluster(owner, pods=[waiter], nodes=[node_room()])
    acts = [*decide(world, EMPTY, ReleaseRules()).acts]
    acts += decide(world, replace(EMPTY, announced=told), ReleaseRules()).acts
    said = [with_link(act.message, HELP_URL, Anchor.RELEASED) for act in acts]

    assert [Step.ANNOUNCE, Step.RELEASE] == [act.step for act in acts]
    assert [] == [text for text in said if len(text) > MOST_TEXT or not text.isprintable()]
    assert said[0].startswith(f"{10**30} replicas will be released at 2027-01-15T08:0")
    assert said[1].startswith(f"released {10**30} replicas: all its pods have been idle since")
    for verb, does, text in zip(
        ("keep", "wake"), ("keeps it", "brings it back"), said, strict=True
    ):
        named = shortened(name, 63)
        assert f"kubectl gpufence {verb} -n team-a deployment/" in text
        assert f"{named} {does} {HELP_URL}#released" in text
