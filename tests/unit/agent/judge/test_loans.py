"""What pods borrow above their requests: lent by idle pods, asked back by all others."""

from typing import Any

import pytest

from agent.judge import objection
from agent.model.decision import Answer, Brake, Outcome
from agent.model.pod import PodLimit
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.world import Act, World
from tests.unit.agent.judge.scenes import Scene, acts, play, scenes

UUID = CARDS[0].uuid
REQUEST, MOST = 3 * GIB, 12 * GIB
IDLE = 700.0
NEVER = EvictionPolicy(lend_after_seconds=0)


def borrower(name: str = "a", request: int = REQUEST, most: int = MOST, **more: Any) -> Any:
    return pod(name, limits={UUID: PodLimit(most, share_bytes=request)}, **more)


def lent(
    held: int = MOST, *others: Any, idle: float | None = IDLE, policy: EvictionPolicy | None = None
) -> World:
    """Make a card on which `a` borrows, and `b` holds one of the six GiB it is promised."""
    world = World(policy=policy or EvictionPolicy(), cards=1)
    world.add(borrower(), held).add(pod("b", limit=6 * GIB, namespace="team-b"), GIB)
    for item in others:
        world.add(item, REQUEST + 500 * MIB)
    world.idle = {} if idle is None else {"b": idle}
    return world.settle_in()


@scenes(
    Scene("an idle pod lends", lent(), (), Outcome.BORROWING),
    Scene("within its request", lent(REQUEST, idle=None), (), Outcome.WITHIN),
    Scene("nothing is missed", lent(8 * GIB, idle=None), (), Outcome.BORROWING),
    Scene("of an unknown pod nothing is lent", lent(idle=None), acts(15)),
    Scene("nor of a busy one", lent(idle=0.0), acts(15)),
    Scene("nor of one that is idle for a moment", lent(idle=500.0), acts(15)),
    Scene("nor where nothing is to be lent", lent(policy=NEVER), acts(15)),
    Scene("a borrower above its limit has no longer", lent(13 * GIB, idle=None), acts(15)),
    Scene(
        "lenders of unknown use, one from the beginning",
        lent(idle=None).hold("b", None).add(pod("odd"), None),
        (),
        Outcome.BORROWING,
    ),
    Scene("a lender that grows", lent().at(20, "hold", "b", GIB + 64 * MIB), acts(35)),
    Scene(
        "a lender that creeps",
        lent().each(lambda world, second: world.hold("b", GIB + second * MIB)),
        acts(64 + 15),
    ),
    Scene("a lender that lets go is as idle", lent().at(5, "hold", "b", 0), (), Outcome.BORROWING),
    Scene(
        "it lends again when it has been idle for as long as before",
        lent(8 * GIB).at(5, "hold", "b", 2 * GIB).at(700, "hold", "a", MOST),
        (),
        Outcome.BORROWING,
        until=800,
    ),
    Scene("a nearly full card", lent(MOST).at(5, "set", free={0: 400 * MIB}), acts(20)),
    Scene(
        "a loan within the margin",
        lent(REQUEST + 200 * MIB, idle=None).set(free={0: 0}),
        (),
        Outcome.BORROWING,
    ),
    Scene(
        "what was given back is not asked again",
        lent(idle=None).at(14, "hold", "a", 8 * GIB),
        (),
        Outcome.BORROWING,
    ),
    Scene(
        "one that takes again at once has the rest of its time",
        lent(idle=None).at(10, "hold", "a", 8 * GIB).at(40, "hold", "a", MOST),
        acts(45),
    ),
    Scene(
        "a minute later it is asked anew",
        lent(idle=None).at(10, "hold", "a", 8 * GIB).at(80, "hold", "a", MOST),
        acts(95),
    ),
    Scene(
        "the largest loan goes, and no more than needed",
        lent(8 * GIB, borrower("c"), idle=None).at(0, "set", idle={}),
        acts(15),
        until=60,
    ),
    Scene(
        "pods over their limits go first",
        lent(REQUEST + 500 * MIB, idle=0.0)
        .add(pod("thief", limit=GIB, namespace="team-c"))
        .at(0, "hold", "thief", 9 * GIB),
        [Act(10, "thief")],
        Outcome.BORROWING,
    ),
    Scene(
        "a loan that gives back too little",
        lent(REQUEST + 500 * MIB, idle=None).add(pod("free", mode=None), 11 * GIB),
        (),
        Outcome.RECALLED,
    ),
    Scene("an exempt pod", lent(idle=None).change("a", exempt="static"), (), Outcome.EXEMPT),
    Scene("a lower mode", lent(idle=None).change("a", mode=Mode.CAP), (), Outcome.WOULD_EVICT),
    Scene("a card that cannot be listed", lent(idle=None).set(unlisted={0}), (), Outcome.UNKNOWN),
    Scene(
        "what a budget shields",
        lent(idle=None).set(answer=Answer.BLOCKED),
        acts(15, 20, 30, 31, last="delete"),
        until=32,
    ),
    Scene(
        "what is borrowed of nobody",
        World(cards=1).add(borrower(), MOST).settle_in(),
        (),
        Outcome.BORROWING,
    ),
)
def test_loans(scene: Scene) -> None:
    """A pod above its request goes after 15 s in which others missed what it borrows."""
    play(scene)


@pytest.mark.parametrize(("seconds", "outcome"), [(70, Outcome.BORROWING), (0, Outcome.EVICT)])
def test_a_new_agent_lends_of_what_is_idle_as_long_as_it_looks(
    seconds: float, outcome: Outcome
) -> None:
    """After a start, pods idle since then lend; else each upgrade would evict all borrowers."""
    world = World(cards=1, started_at=0.0).add(borrower(), MOST).add(pod("b", limit=6 * GIB), GIB)
    world.each(lambda _, second: world.set(idle={"b": seconds and float(second)})).run(76)

    assert outcome is world.outcome("a")


def test_what_is_due_when() -> None:
    """Until it has to go a borrower is recalled, and the seconds left are told."""
    world = lent(idle=None)
    world.run(6)
    (verdict,) = (item for item in world.decision.verdicts if item.pod.name == "a")

    assert (Outcome.RECALLED, 10.0, 15.0) == (verdict.outcome, verdict.due_seconds, verdict.due_at)
    assert 15.0 == world.decision.deadline
    assert ["b"] == [use.pod.name for use in world.decision.missing]


@pytest.mark.parametrize("idle", [None, IDLE], ids=["missed", "lent again"])
def test_the_last_look_spares_what_gives_back(idle: float | None) -> None:
    """An act is called off where the pod has given back, or the lender is idle after all."""
    world = lent(idle=None)
    world.run(15)
    world.tick()
    (verdict,) = world.decision.acts
    lending = frozenset() if idle is None else frozenset({"uid-b"})
    assert world.use is not None
    against = objection(verdict, world.use, world.policy, 15.0, lending=lending)
    after = world.hold("a", 8 * GIB).look(world.use.pods)

    assert bool(idle) is bool(against)
    assert "does not end a shortage" in objection(verdict, after, world.policy, 16.0)


def test_a_loan_is_no_offence() -> None:
    """An eviction for what a pod borrowed lengthens no hold of its owner's next pod."""
    world = lent(idle=None)
    world.run(20)

    assert {} == world.memory.offences


def test_leaving_pods_delay_a_recall_for_a_while() -> None:
    """Pods sent on their way out one after the other hold it up by 40 s in an hour."""
    world = lent(idle=None).hold("a", 9 * GIB)
    for number, second in enumerate(range(0, 3600, 35)):
        decoy = pod(f"decoy{number}", namespace="team-d", terminating=True)
        world.at(second, "add", decoy, 4 * GIB).at(second + 35, "remove", decoy.name)
    world.run(15)
    world.run(16)

    assert [] == world.acts
    assert Brake.TERMINATING in {item.brake for item in world.decision.verdicts}
    assert [Act(55, "a")] == world.run(80)


def test_memory_is_kept_only_where_pods_may_borrow() -> None:
    """On a node of fixed pods nothing of lenders is remembered."""
    world = World().add(pod(), GIB)
    world.run(3)

    assert ({}, frozenset()) == (world.memory.lenders, world.decision.lending)
