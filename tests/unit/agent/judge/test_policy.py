"""
The policy, row by row: which pods are evicted at which second, and which never.

Second 0 is the first sample over the limit, the threshold duration 30 s, the grace 120 s.
"""

from dataclasses import replace

import pytest

from agent.judge.reason import MOST_REMEMBERED, offended
from agent.judge.time import BucketRules, is_due, pour
from agent.model.decision import Answer, Outcome
from agent.model.memory import EMPTY, Memory
from agent.model.pod import PodLimit, PodOnNode
from agent.model.policy import EvictionPolicy
from gpufence import names
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, controller, pod, read, status_of
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.support.builders import pod as raw_pod
from tests.unit.agent.judge.scenes import (
    OVER,
    WITHIN,
    Scene,
    full,
    play,
    scenes,
    settled,
    started,
    violating,
)

A30 = [Act(30, "a")]
ASIDE = pod("a", "main", "aside")
PARTS = {CARDS[0].uuid: PodLimit(LIMIT, {"main": GIB, "aside": 2 * GIB})}


def limits(limit: int) -> dict[str, PodLimit]:
    return {item.uuid: PodLimit(limit) for item in CARDS}


def declaring(own: str, **namespace: str) -> PodOnNode:
    """Read pod `a` with this annotation, in a namespace with these words."""
    raw = raw_pod(annotations={names.INJECTED: "yes", names.MEMORY: own})
    raw["metadata"] |= {"name": "a", "uid": "uid-a"}
    words = {names.PREFIX + key.replace("_", "-"): value for key, value in namespace.items()}
    return read(raw | {"status": status_of("a")}, annotations=words)


def swinging(over: int, under: int) -> World:
    """Have a pod over its limit for some seconds, and within it for others, by turns."""
    return settled().each(
        lambda world, second: world.hold("a", OVER if second % (over + under) < over else WITHIN)
    )


@scenes(
    Scene("over its limit", violating(pod("a"), pod("b")), A30),
    Scene("over from its start: grace and threshold", started(), [Act(150, "a")]),
    Scene(
        "a peak inside the grace",
        started().each(lambda world, at: world.hold("a", OVER if at < 119 else WITHIN)),
    ),
    Scene("4 s over and 4 s under gain 2 s in each 8", swinging(4, 4), [Act(114, "a")]),
    Scene("9 s over and 1 s under gain 8.5 s in each 10", swinging(9, 1), [Act(35, "a")]),
    Scene("29 s over and 58 s under drain all they gain", swinging(29, 58), until=400),
    Scene("a peak now and then", swinging(1, 2), until=400),
    Scene(
        "2 s within the limit take one second away",
        violating().at(20, "hold", "a", 0).at(22, "hold", "a", OVER),
        [Act(33, "a")],
    ),
    Scene(
        "another pod under the same name begins from zero",
        violating().at(20, "change", "a", uid="uid-next").at(20, "restart", "a"),
        [Act(170, "a")],
    ),
    Scene(
        "an agent restarted in between begins from zero",
        violating().at(20, "set", memory=Memory(20), use=None),
        [Act(170, "a")],
    ),
    Scene("an agent just started", started(started_at=0), [Act(150, "a")]),
    Scene(
        "an agent just started, on a short card",
        started(started_at=0).add(
            pod("b", limit=T4_BYTES - OVER - 300 * MIB), T4_BYTES - OVER - 300 * MIB
        ),
        [Act(63, "a")],
    ),
    Scene(
        "a mode that rises begins from zero, the grace included",
        violating(pod(mode=Mode.CAP)).at(100, "change", "a", mode=Mode.EVICT),
        [Act(250, "a")],
    ),
    Scene("mode cap", violating(pod(mode=Mode.CAP)), (), Outcome.WOULD_EVICT, until=31),
    Scene("mode observe", violating(pod(mode=Mode.OBSERVE)), (), Outcome.WOULD_EVICT, until=31),
    Scene(
        "a mode that falls keeps the time",
        violating().at(20, "change", "a", mode=Mode.OBSERVE),
        (),
        Outcome.WOULD_EVICT,
        until=31,
    ),
    Scene("the kill switch a second before", violating().at(30, "change", "a", mode=Mode.CAP)),
    Scene(
        "a limit that falls while over it",
        violating().at(20, "change", "a", limits=limits(GIB)),
        A30,
    ),
    Scene(
        "a limit that falls below what is held begins from zero",
        violating(used=2 * GIB).at(50, "change", "a", limits=limits(GIB)),
        [Act(80, "a")],
    ),
    Scene(
        "a limit that is raised above what is held",
        violating().at(20, "change", "a", limits=limits(2 * LIMIT)),
        (),
        Outcome.WITHIN,
    ),
    Scene(
        "a namespace's memory lowered under a running pod",
        violating(declaring("3Gi", memory="3Gi"), used=2 * GIB).at(
            50, "add", declaring("3Gi", memory="1Gi"), 2 * GIB
        ),
        (),
        Outcome.WITHIN,
    ),
    Scene(
        "a namespace's ceiling lowered under a running pod",
        violating(declaring("3Gi", max_memory="3Gi"), used=2 * GIB).at(
            50, "add", declaring("3Gi", max_memory="1Gi"), 2 * GIB
        ),
        [Act(80, "a")],
    ),
)
def test_time_over_a_limit(scene: Scene) -> None:
    """What counts, what does not, and what begins it from zero."""
    play(scene)


@scenes(
    Scene(
        "a new process counts from its first list on",
        settled().at(0, "restart", "a").at(0, "hold", "a", OVER),
        A30,
    ),
    Scene(
        "another process in every list",
        violating().each(lambda world, _: world.restart("a")),
        A30,
    ),
    Scene("a process replaced in between", violating().at(20, "restart", "a"), A30),
    Scene(
        "a process whose PID fell to another one: not until a second list",
        violating().at(20, "set", began={"a": -400.0}),
        [Act(31, "a")],
        until=60,
    ),
    Scene(
        "seconds without a list: ten of them, and the one before",
        violating().each(lambda world, at: world.set(unlisted={0} if 10 <= at < 20 else set())),
        [Act(41, "a")],
    ),
    Scene(
        "use that becomes unknown",
        violating().at(30, "hold", "a", None),
        (),
        Outcome.UNKNOWN,
        until=80,
    ),
    Scene(
        "the same list twice is no evidence",
        violating().at(30, "set", renewed=False),
        (),
        Outcome.NOT_RENEWED,
        until=31,
    ),
    Scene(
        "over only by a PID that changed hands",
        settled().set(began={"a": -400.0}).at(0, "hold", "a", OVER),
        (),
        Outcome.UNCONFIRMED,
        until=1,
    ),
    Scene(
        "what is certain is enough beside a process without a figure",
        violating(ASIDE).hold("a", None, container="aside"),
        A30,
    ),
    Scene(
        "a figure that comes and goes",
        violating(ASIDE).each(
            lambda world, at: world.hold("a", None if at % 2 else 10 * MIB, container="aside")
        ),
        A30,
    ),
    *(
        Scene(
            f"{known // MIB} MiB beside a process without a figure are not certainly over",
            violating(ASIDE, used=known).hold("a", None, container="aside"),
            (),
            Outcome.UNKNOWN,
            until=100,
        )
        for known in (0, WITHIN, 3 * GIB, 3 * GIB + 60 * MIB, 3 * GIB + 100 * MIB)
    ),
)
def test_what_is_measured(scene: Scene) -> None:
    """Only what is listed, known and confirmed is held against a pod."""
    play(scene)


@scenes(
    Scene(
        "a Job's pod, so that it counts against the backoffLimit",
        violating(pod(controller=controller("Job"))),
        [Act(30, "a", "evict-job")],
    ),
    Scene(
        "a mirror pod, which its kubelet would start again",
        violating(pod(exempt="it is a mirror pod", static_uid="0" * 32)),
        (),
        Outcome.EXEMPT,
    ),
    Scene(
        "no webhook saw it, and no pod is hurt",
        violating(pod("a", injected=False), pod("b")),
        (),
        Outcome.UNINJECTED,
    ),
    Scene(
        "no webhook saw it, and its 300 MiB end the shortage",
        full(OVER, free=220 * MIB, injected=False),
        [Act(3, "a")],
    ),
    Scene(
        "no webhook saw it, and its 300 MiB do not",
        full(OVER, free=200 * MIB, injected=False),
    ),
    Scene(
        "no limit",
        violating(pod(limit=None, undeclared="it asks for nothing"), used=14 * GIB),
        (),
        Outcome.UNDECLARED,
    ),
    Scene("a limit that is only implied", violating(pod(enforced=False)), (), Outcome.NOT_ENFORCED),
    Scene(
        "alone on a full card, where the short margin does not apply",
        violating(pod(limit=14 * GIB), used=14 * GIB + 200 * MIB, free=0),
        (),
        Outcome.TOLERATED,
    ),
    Scene("a client of the node's MPS server", violating().set(mps={0}), (), Outcome.MPS),
    Scene("no process on any card", settled().set(holds={}), (), Outcome.IDLE),
    Scene(
        "a container over its part in a pod within its limit",
        violating(pod("a", "main", "aside", limits=PARTS), used=2 * GIB),
        (),
        Outcome.WITHIN,
    ),
    Scene(
        "containers over the limit together",
        violating(ASIDE, used=2 * GIB).hold("a", 2 * GIB, container="aside"),
        A30,
    ),
    Scene("the limit on each of two cards", violating(used=LIMIT).hold("a", LIMIT, card=1)),
    Scene("over on two cards, once", violating().hold("a", OVER + GIB, card=1), A30),
    Scene("a process on two cards, over on one", violating(used=GIB).hold("a", OVER, card=1), A30),
    Scene(
        "the next pod of an evicted owner: grace and a minute",
        violating(pod(controller=controller())).at(
            40, "add", pod("b", controller=controller()), OVER
        ),
        [Act(30, "a"), Act(220, "b")],
    ),
    *(
        Scene(
            f"beside a worse offender in mode {mode}",
            violating(pod("a"), pod("other", namespace="team-b", mode=mode)).hold(
                "other", OVER + GIB
            ),
            A30,
        )
        for mode in (None, Mode.OBSERVE, Mode.CAP)
    ),
    Scene(
        "another pod has its name when the eviction arrives: counted from its own first sample",
        violating()
        .set(answer=Answer.REPLACED)
        .at(31, "change", "a", uid="uid-next")
        .at(31, "restart", "a")
        .at(31, "hold", "a", WITHIN)
        .at(120, "hold", "a", OVER),
        [Act(30, "a"), Act(181, "a")],
        until=182,
    ),
)
def test_kinds_of_pods(scene: Scene) -> None:
    """Which pods are held to their limits, and which are only reported."""
    play(scene)


def test_a_tick_that_comes_late() -> None:
    """A gap of more than three intervals between two samples does not count."""
    world = violating()
    world.run(10)
    world.now += 4

    assert [Act(35, "a")] == world.run(60)


@pytest.mark.parametrize(("ends_at", "due"), [(3.0, True), (3.01, True), (2.99, False)])
def test_a_hold_is_over_with_the_sample_that_should_end_it(ends_at: float, *, due: bool) -> None:
    """A sample that comes a hair early does not end a hold; the next is due when it ends."""
    bucket = EMPTY
    for at in (0.0, 1.0, 2.0, ends_at):
        bucket = pour(bucket, BucketRules(at, 3.0, 3.0), over=True)

    assert due is is_due(bucket, 3.0)


DAY = EvictionPolicy().repeated_memory_seconds
LADDER = EvictionPolicy().repeated_hold_seconds


@pytest.mark.parametrize(
    ("before", "since", "ladder", "expected"),
    [
        (0, 60.0, LADDER, 30),
        (1, 60.0, LADDER, 60),
        (2, 60.0, LADDER, 300),
        (3, 60.0, LADDER, 1800),
        (9, 60.0, LADDER, 1800),
        (1, DAY, (60.0,), 60),
        (1, DAY + 1, (60.0,), 30),
        (1, 60.0, (), 30),
    ],
)
def test_hold_of_a_repeat_offender(
    before: int, since: float, ladder: tuple[float, ...], expected: int
) -> None:
    """An owner evicted before gets a longer hold each time, until that is a day ago."""
    world = settled(policy=EvictionPolicy(repeated_hold_seconds=ladder))
    for _ in range(before):
        offences = offended(world.memory.offences, pod().lineage, -since, world.policy)
        world.memory = replace(world.memory, offences=offences)
    world.hold("a", OVER).run(1)

    assert expected == world.decision.verdicts[0].due_seconds


def test_repeat_offender_on_a_short_card() -> None:
    """A shortage does not wait longer for those who caused one before."""
    world = full()
    lineage = world.pods["a"].lineage
    world.memory = replace(world.memory, offences=offended({}, lineage, -60.0, EvictionPolicy()))

    assert [Act(3, "a")] == world.run(10)


def test_what_is_remembered_of_owners_stays_bounded() -> None:
    """
    An eviction too old to matter is dropped with the next one, and the oldest when there are many.
    """
    policy = EvictionPolicy()
    old = offended({}, ("n", "Pod", "old"), 0.0, policy)
    many = old
    for number in range(MOST_REMEMBERED + 1):
        many = offended(many, ("n", "Pod", f"p{number}"), float(number), policy)

    assert [("n", "Pod", "next")] == list(offended(old, ("n", "Pod", "next"), DAY + 1, policy))
    assert MOST_REMEMBERED == len(many)
    assert ("n", "Pod", "old") not in many
