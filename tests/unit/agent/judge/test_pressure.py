"""Memory pressure: when a card is short, which pods end that, and what excuses none."""

from typing import Any

import pytest

from agent.model.decision import Brake, Outcome, Shortage
from agent.model.memory import Bucket, Evicted
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.world import Act, World
from tests.support.builders import T4_BYTES
from tests.unit.agent.judge.scenes import (
    OVER,
    SHORT_ONLY,
    SLIGHTLY,
    THEFT,
    Scene,
    acts,
    blocked,
    full,
    one_on_each_card,
    play,
    robbed,
    scenes,
    settled,
    started,
    suspended,
    violating,
    violators,
)

UUID = CARDS[0].uuid
PROMISED_NOTHING: dict[str, dict[str, Any]] = {
    "terminating": {"terminating": True},
    "ended": {"ended": True},
    "not enforced": {"enforced": False},
    "not labelled": {"mode": None},
}


def decoys(world: World, namespace: str, *, held: int, ends_after: int = 35) -> World:
    """Send a pod on its way out every 35 s, for an hour."""
    for number, second in enumerate(range(0, 3600, 35)):
        decoy = pod(f"decoy{number}", namespace=namespace, terminating=True)
        world.at(second, "add", decoy, held).at(second + ends_after, "remove", decoy.name)
    return world


def waiting() -> World:
    """Make a node whose shortage leaving pods of others would end, for a while."""
    return robbed(policy=SHORT_ONLY, free=0).hold("a", THEFT - 3 * GIB)


def pressed(limit: int, used: int, **more: Any) -> World:
    """Make a node on which `a` holds so much, and `b` next to nothing of all the rest."""
    world = started(pod("a", limit=limit), used=used, **more)
    return world.add(pod("b", limit=T4_BYTES - limit), MIB)


@scenes(
    Scene("no webhook saw the thief", robbed(injected=False), acts(9)),
    Scene("evictions on short cards only", robbed(policy=SHORT_ONLY), acts(9)),
    Scene("a tolerated pod on a short card", full(), acts(3), until=60),
    Scene(
        "a pod over its limit stays until its neighbours run short",
        full(OVER, free=600 * MIB, policy=SHORT_ONLY)
        .add(pod("c", limit=200 * MIB))
        .at(100, "hold", "c", 200 * MIB),
        acts(103),
    ),
    Scene(
        "a pod that has not begun is promised its memory",
        settled(pod("a"), policy=SHORT_ONLY)
        .add(pod("late", limit=3 * GIB, assigned=frozenset({UUID})))
        .set(holds={("a", "main", 0): 13 * GIB}),
        acts(8),
        until=60,
    ),
    *(
        Scene(
            f"nothing is promised to one that is {what}",
            robbed(policy=SHORT_ONLY).change("b", **change),
        )
        for what, change in PROMISED_NOTHING.items()
    ),
    Scene(
        "a neighbour whose use is unknown may hold all of its promise",
        robbed(policy=SHORT_ONLY).hold("b", None),
    ),
    Scene(
        "a neighbour of an unfenced namespace can be hurt",
        full(OVER, free=300 * MIB).change("b", namespace="free", mode=None),
        acts(3),
    ),
    Scene(
        "what is certain of a thief ends it",
        robbed(policy=SHORT_ONLY)
        .hold("a", None, container="aside")
        .change("a", containers=pod("a", "main", "aside").containers),
        acts(9),
        until=10,
    ),
    Scene(
        "a tolerated pod on a card that is promised to the last byte",
        settled(pod("a"), pod("b", limit=T4_BYTES - LIMIT)).hold("a", LIMIT + 200 * MIB),
        (),
        Outcome.TOLERATED,
        until=400,
    ),
    Scene(
        "twice the limit for twenty seconds takes of a promise",
        settled(pod("a"), pod("b", limit=T4_BYTES - LIMIT))
        .hold("a", 2 * LIMIT)
        .at(20, "hold", "a", LIMIT),
        until=400,
    ),
    *(
        Scene(
            f"{excess // MIB} MiB in the grace are a small part of what is missing",
            started(pod("a", limit=GIB), used=GIB + excess)
            .add(pod("b", limit=14 * GIB), MIB)
            .add(pod("other", namespace="free", mode=None), T4_BYTES - GIB - excess),
            until=100,
        )
        for excess in (300 * MIB, 4 * GIB)
    ),
    Scene(
        "a client of the node's MPS server",
        pressed(LIMIT, THEFT, mps={0}),
        (),
        Outcome.MPS,
        until=60,
    ),
    Scene(
        "a little that no fence counts shields none",
        pressed(LIMIT, THEFT).set(strangers={9: (0, 2 * GIB)}),
        acts(9),
        until=60,
    ),
    Scene(
        "a process of no pod is no neighbour",
        violating(used=SLIGHTLY).set(strangers={9: (0, 12 * GIB)}),
    ),
    Scene(
        "a card that does not say how much is free",
        violating(pod("a", injected=False), pod("b")).set(free={0: None}),
        until=80,
    ),
    Scene(
        "of two offenders the larger excess alone",
        settled(pod("a"), pod("c"), pod("b", limit=8 * GIB), policy=SHORT_ONLY)
        .hold("a", 9 * GIB)
        .hold("c", LIMIT + 400 * MIB)
        .hold("b", GIB)
        .at(60, "hold", "b", 8 * GIB),
        acts(13),
    ),
    Scene(
        "as many as it takes, without waiting",
        settled(
            *(pod(each, limit=GIB) for each in "ac"),
            pod("b", limit=13 * GIB),
            used=MIB,
            policy=SHORT_ONLY,
        )
        .hold("a", 6 * GIB)
        .hold("c", 5 * GIB),
        [Act(15, "a"), Act(19, "c")],
        until=60,
    ),
    *(
        Scene(
            f"decoys of {namespace} that give back too little",
            decoys(robbed(policy=SHORT_ONLY, free=GIB), namespace, held=90 * MIB, ends_after=45),
            acts(9),
            until=60,
        )
        for namespace in ("team-a", "team-c")
    ),
    Scene(
        "leaving pods of its own namespace hold up none",
        decoys(waiting(), "team-a", held=3 * GIB),
        acts(3),
        until=100,
    ),
    Scene(
        "those of another one do so for 40 s in all",
        decoys(waiting(), "team-c", held=3 * GIB),
        acts(43),
        until=100,
    ),
    Scene(
        "a tolerated pod waits for whatever leaves",
        decoys(full(), "team-c", held=70 * MIB)
        .set(free={0: 450 * MIB})
        .at(0, "remember", held_up={UUID: Bucket(40.0, over=False, at=-1)}),
    ),
    Scene(
        "evictions of the minute elsewhere are no excuse",
        robbed(policy=SHORT_ONLY).at(0, "remember", evicted=(Evicted(0.0, "team-a"),) * 10),
        acts(9),
        until=20,
    ),
    Scene(
        "the API server is away: 5 s by second 5, and 20 s from there on",
        robbed(policy=SHORT_ONLY).each(lambda world, at: world.set(reachable=not 5 <= at < 20)),
        acts(24),
        until=60,
    ),
)
def test_shortages(scene: Scene) -> None:
    """What is a shortage, which pods end it, and what excuses none."""
    play(scene)


def test_decoys_are_not_the_larger_part_of_a_shortage() -> None:
    """What pods on their way out hold takes no blame off the one that stays."""
    world = settled(pod("a", limit=GIB), pod("b", limit=13 * GIB), used=MIB, policy=SHORT_ONLY)
    decoys(world.hold("a", 2 * GIB), "team-c", held=GIB, ends_after=45)
    world.add(pod("other", namespace="free", mode=None), 100 * MIB)

    assert ["a"] == [act.pod for act in world.run(200)]


def test_suspension_lets_shortages_be_ended() -> None:
    """While evictions are suspended, a pod that takes what others were promised is evicted."""
    world = violators(5, "w", "x", "y", "z").add(pod("b", limit=12 * GIB), MIB, card=0)

    assert ["p0"] == [act.pod for act in world.hold("p0", 10 * GIB, card=0).run(200)]


def test_suspension_counts_no_pod_in_its_grace() -> None:
    """Pods that have just started and peak together suspend nothing."""
    world = violating()
    for name in "xyz":
        world.add(pod(name, namespace=name), OVER, card=1)

    assert Act(30, "a") in world.run(60)


@pytest.mark.parametrize(
    ("used", "expected"),
    [(OVER, 30), (LIMIT + 2560 * MIB, 30), (LIMIT + 5 * GIB, 15), (LIMIT + 9 * GIB, 9)],
)
def test_who_takes_more_has_less_time(used: int, expected: int) -> None:
    """The hold is shorter in proportion to what is held above the limit, from 2.5 GiB on."""
    assert acts(expected) == settled().hold("a", used).run(60)


@pytest.mark.parametrize("seconds", [6, 9, 29])
def test_no_sawtooth_of_a_large_theft_lasts(seconds: int) -> None:
    """
    12 GiB of 3 for some seconds, and nothing for twice as long and more, ends within a minute.
    """
    world = settled().each(lambda world, at: world.hold("a", THEFT if at % 30 < seconds else GIB))

    assert 120 > world.run(1200)[0].second


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("capped", {"mode": Mode.CAP}),
        ("exempt", {"exempt": "it is a static pod"}),
        ("implied", {"enforced": False}),
        ("unlimited", {"limits": {}}),
    ],
)
def test_what_is_behind_a_shortage_is_named(name: str, change: dict[str, Any]) -> None:
    """After half a minute the finding names what holds a promise and is not evicted for it."""
    world = settled(pod("a"), pod("b", limit=9 * GIB), pod(name, **change)).hold(name, 13 * GIB)
    world.run(40)

    assert (name, False) == cause(world)


def test_a_tolerated_pod_pays_for_no_stranger() -> None:
    """
    A pod slightly over its limit, in its grace, stays when a pod without a fence fills the card.
    """
    world = started(used=SLIGHTLY).add(pod("b"), GIB)
    world.add(pod("other", namespace="free", mode=None), 0)

    assert [] == world.at(10, "hold", "other", T4_BYTES - SLIGHTLY - GIB).run(60)
    assert ("other", False) == cause(world)


def test_hidden_memory_is_named_as_such() -> None:
    """Memory that no process shows stands behind a shortage that nothing else explains."""
    world = settled(pod("a"), pod("b")).set(free={0: GIB})
    world.run(40)

    assert ("", True) == cause(world)


def cause(world: World) -> tuple[str, bool]:
    """Return the name of what is behind the card's shortage, and whether no process shows it."""
    world.run(world.now + 1)
    found: Shortage | None = world.decision.findings[UUID].shortage
    assert found is not None
    assert found.cause is not None
    return "" if found.cause.pod is None else found.cause.pod.name, found.cause.hidden


@pytest.mark.parametrize(
    ("world", "outcome", "brake", "second"),
    [
        (one_on_each_card(4), Outcome.BRAKED, Brake.NAMESPACE_CAP, 31),
        (decoys(waiting(), "team-c", held=3 * GIB), Outcome.BRAKED, Brake.TERMINATING, 20),
        (
            blocked(robbed(policy=SHORT_ONLY)).each(
                lambda world, at: world.set(reachable=not 10 <= at < 40)
            ),
            Outcome.BRAKED,
            Brake.STALE_PODS,
            30,
        ),
    ],
)
def test_a_pod_that_waits_names_the_brake(
    world: World, outcome: Outcome, brake: Brake, second: int
) -> None:
    """Be it a cap, leaving pods, or pods that are not known for certain."""
    world.run(second)

    assert (outcome, brake) in [(item.outcome, item.brake) for item in world.decision.verdicts]


def test_a_suspension_is_the_brake_of_all() -> None:
    """Evictions that are suspended have the decision say so."""
    world = suspended()
    world.run(31)

    assert Brake.SUSPENDED is world.decision.brake
