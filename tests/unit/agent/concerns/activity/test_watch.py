"""What pods do on one card: busy, idle since when, or unknown."""

from collections.abc import Callable

import pytest

from agent.concerns.activity.model import ActivityPolicy, CardTrack
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import occupant
from tests.support.agent.watching import POLICY, UUID, Watched

BUSY = ("busy", "Busy")
LOADING = ("busy", "Loading")
COMPUTES = ("busy", "CPUBusy")
IDLE = ("idle", "NoKernels")
UNKNOWN = ("unknown", "NotMeasurable")


@pytest.fixture
def card() -> Watched:
    """A card with two pods that have done nothing for a while."""
    return Watched().add("a", 1).add("b", 2).settle()


def creeping(card: Watched) -> Watched:
    for step in range(1, 5):
        card.hold(1, GIB + step * 16 * MIB).pass_()
    return card


def working(card: Watched, pid: int) -> Watched:
    for _ in range(8):
        card.pass_([pid], percent=90)
    return card


@pytest.mark.parametrize(
    ("happens", "a", "b"),
    [
        (lambda card: card, IDLE, IDLE),
        (lambda card: card.pass_([1], percent=40), BUSY, IDLE),
        (lambda card: card.pass_([1]).settle(2), IDLE, IDLE),
        (lambda card: card.hold(1, GIB + 64 * MIB).pass_(), LOADING, IDLE),
        (lambda card: card.hold(1, GIB - 64 * MIB).pass_(), LOADING, IDLE),
        (creeping, LOADING, IDLE),
        (lambda card: card.start("a", 7).hold(7, MIB).pass_(), LOADING, IDLE),
        (lambda card: card.set(cpu={1: 0.2}).pass_(), IDLE, IDLE),
        (lambda card: card.set(cpu={1: 0.25}).pass_(), COMPUTES, IDLE),
        (lambda card: card.set(cpu={1: 5.0}).pass_(), COMPUTES, IDLE),
        (
            lambda card: (
                card.start("a", 7).hold(7, MIB).settle(2).set(cpu={1: 0.15, 7: 0.15}).pass_()
            ),
            COMPUTES,
            IDLE,
        ),
        (lambda card: card.set(silent={1}).pass_(), UNKNOWN, IDLE),
        (lambda card: card.pass_([1], hole=True), BUSY, UNKNOWN),
        (lambda card: card.start("a", 7).pass_([7]), BUSY, IDLE),
        (lambda card: working(card, 2), IDLE, BUSY),
        (lambda card: working(card.stranger(9, MIB), 9), IDLE, IDLE),
        (lambda card: card.pass_(None, percent=0.01), BUSY, BUSY),
        (lambda card: card.pass_(None, percent=0.0), IDLE, IDLE),
        (lambda card: card.hold(1, None).pass_(), UNKNOWN, IDLE),
    ],
    ids=[
        *("watched", "kernels", "work that has ended", "memory taken", "memory given back"),
        *("memory that creeps", "a process that comes", "a loop that waits", "CPU", "much CPU"),
        *("CPU of two processes", "CPU that cannot be read", "work after a hole"),
        *("a worker on no list", "a busy neighbour", "a busy process of the node"),
        *("an instance at work", "an instance at rest", "memory that is hidden"),
    ],
)
def test_what_a_pod_does(
    card: Watched,
    happens: Callable[[Watched], Watched],
    a: tuple[str, str],
    b: tuple[str, str],
) -> None:
    """Any sign of work makes busy the pod whose it is, and idle is what shows none."""
    happens(card)

    assert (a, b) == (card.state("a"), card.state("b"))


@pytest.mark.parametrize(
    "happens",
    [
        lambda card: card.set(listed=False).pass_(),
        lambda card: card.set(answers=False).pass_(),
        lambda card: card.set(mps={1}).pass_(),
        lambda card: card.set(slow=True).hold(1, 2 * GIB).pass_(),
        lambda card: card.pass_([2], garbled=True),
        lambda card: card.pass_(hole=True),
        lambda card: card.restart_agent().pass_(),
        lambda card: card.pass_(percent=5),
        lambda card: card.pass_([7]),
    ],
    ids=[
        *("an unreadable card", "a driver that does not tell", "MPS", "memory beside a slow list"),
        *("entries of zombies", "a hole", "a new agent", "load of no process"),
        "a worker that has ended",
    ],
)
def test_what_cannot_be_measured_is_unknown(
    card: Watched, happens: Callable[[Watched], Watched]
) -> None:
    """Where the card does not tell, every pod on it is unknown, and says why."""
    happens(card)

    assert UNKNOWN == card.state("a") == card.state("b")
    assert card.track("a").why


@pytest.mark.parametrize(
    ("happens", "seconds"),
    [
        (lambda card: card, 10.0),
        (lambda card: card.pass_([1]), 0.0),
        (lambda card: card.pass_([2]), 15.0),
        (lambda card: card.pass_([1]).settle(2), 10.0),
        (lambda card: card.set(answers=False).pass_().set(answers=True).settle(3), 10.0),
        (lambda card: card.pass_(percent=5).pass_(), 20.0),
        (lambda card: card.settle(6, percent=90).settle(2), 5.0),
    ],
    ids=[
        *("since the first look", "while at work", "beside work", "since the work ended"),
        *("since it is known again", "a forgiven moment", "half a minute of load of no process"),
    ],
)
def test_since_when_it_is_idle(
    card: Watched, happens: Callable[[Watched], Watched], seconds: float
) -> None:
    """Time counts from the last sign of work, or from when all of it was watched again."""
    assert seconds == happens(card).idle_seconds("a")


def test_who_has_just_come_is_not_idle() -> None:
    """The first look has nothing to compare with, so it makes no pod idle."""
    card = Watched().add("a", 1).pass_()

    assert UNKNOWN == card.state("a")
    assert card.idle_seconds("a") is None


def test_busy_seconds_add_up(card: Watched) -> None:
    """Time between two looks in which there was work counts whole, also over a hole in between."""
    card.pass_([1]).pass_([1]).pass_(hole=True).settle(2)

    assert 10.0 == card.track("a").busy_seconds


def test_a_server_that_spins_may_leave_its_cpu_out() -> None:
    """Of a pod that says so only the card counts, and its CPU time is not even read."""
    card = Watched().add("a", 1, cpu_ignored=frozenset({"main"})).settle()
    card.set(cpu={1: 5.0}).pass_()

    assert IDLE == card.state("a")


def test_silence_is_unknown(card: Watched) -> None:
    """No pod is idle on a card of which nothing was heard for three intervals."""
    assert card.observation is not None
    work = card.observation.sample.cards[0].work
    card.now += POLICY.gap_seconds
    card.look(work)
    before = card.state("a")
    card.now += 0.1
    card.look(work)

    assert (IDLE, UNKNOWN) == (before, card.state("a"))


def test_a_worker_that_has_ended_is_named(card: Watched) -> None:
    """A process that came, worked and went between two lists may have been any pod's."""
    assert "process 7" in card.pass_([7]).track("a").why


def test_who_leaves_is_forgotten(card: Watched) -> None:
    """Nothing is remembered of a pod that holds nothing any more."""
    del card.holds[1]
    card.pass_()

    assert [("uid-b", UUID)] == list(card.memory.tracks)
    assert {
        UUID: CardTrack(card.now, GIB, None, card.now - 5, clear_since=1005)
    } == card.memory.cards


def test_a_neighbour_of_the_agent_is_told_by_its_container(card: Watched) -> None:
    """
    Of a worker whose cgroup shows no pod the container decides, and no pod is known by a container
    that the API server does not know.
    """
    owner = card.living[1].owner
    assert owner is not None
    card.living[1] = card.living[1]._replace(owner=owner._replace(pod_uid=None))
    card.living[2] = occupant(2, None, "f" * 64)
    card.holds[3] = card.holds.pop(2)
    card.pass_([1, 2], percent=40)

    assert BUSY == card.state("a")


def test_the_driver_is_asked_as_often_as_activity_is_worked_out() -> None:
    """How often the sampler asks what was done on a card follows from the setting."""
    assert 7.0 == ActivityPolicy(interval_seconds=7.0).work_seconds
