"""Who is busy, who is idle since when, and of whom nobody knows."""

from collections.abc import Callable

import pytest

from agent.concerns.activity.model import ActivityPolicy, CardTrack
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import occupant
from tests.support.agent.watching import POLICY, UUID, Watched

BUSY = ("busy", "Busy")
IDLE = ("idle", "NoKernels")
UNKNOWN = ("unknown", "NotMeasurable")


@pytest.fixture
def card() -> Watched:
    """A card with two pods that have done nothing for a while."""
    made = Watched()
    made.add("a", 1)
    made.add("b", 2)
    made.settle()
    return made


def test_who_has_just_come_is_not_idle() -> None:
    """The first look has nothing to compare with, so it makes nobody idle."""
    card = Watched()
    card.add("a", 1)
    card.pass_()

    assert UNKNOWN == card.state("a")
    assert card.idle_seconds("a") is None


def test_idle_counts_from_when_one_is_watched(card: Watched) -> None:
    """A pod that does nothing is idle since the first look at it."""
    assert IDLE == card.state("a")
    assert 2 * POLICY.interval_seconds == card.idle_seconds("a")


def test_kernels_make_busy_for_the_pod_alone(card: Watched) -> None:
    """One process that worked makes its pod busy, and the neighbour stays idle."""
    card.pass_([1], percent=40)

    assert BUSY == card.state("a")
    assert IDLE == card.state("b")
    assert (0.0, 15.0) == (card.idle_seconds("a"), card.idle_seconds("b"))


def test_idle_begins_when_the_work_ends(card: Watched) -> None:
    """After work the time counts from the last look that showed some."""
    card.pass_([1])
    card.settle(2)

    assert IDLE == card.state("a")
    assert 10.0 == card.idle_seconds("a")


def test_busy_seconds_add_up(card: Watched) -> None:
    """Time between two looks in which there was work counts whole, also over a hole in between."""
    card.pass_([1])
    card.pass_([1])
    card.pass_(hole=True)
    card.settle(2)

    assert 10.0 == card.track("a").busy_seconds


@pytest.mark.parametrize("moved", [64 * MIB, -64 * MIB])
def test_memory_that_moves_is_loading(card: Watched, moved: int) -> None:
    """A pod that takes or gives back 64 MiB is busy."""
    card.holds[1] = GIB + moved
    card.pass_()

    assert ("busy", "Loading") == card.state("a")


def test_memory_that_creeps_is_loading_in_the_end(card: Watched) -> None:
    """Small steps add up: what counts is the way from where the memory last stood."""
    for step in range(1, 5):
        card.holds[1] = GIB + step * 16 * MIB
        card.pass_()

    assert ("busy", "Loading") == card.state("a")


def test_memory_that_moves_beside_a_slow_list(card: Watched) -> None:
    """While a driver is slow with the list, memory that moves may be anybody's."""
    card.slow = True
    card.holds[1] = 2 * GIB
    card.pass_()

    assert UNKNOWN == card.state("a") == card.state("b")


def test_a_process_that_comes_is_loading(card: Watched) -> None:
    """A pod whose processes on the card are others than before is busy."""
    card.start("a", 7)
    card.holds[7] = MIB
    card.pass_()

    assert ("busy", "Loading") == card.state("a")


@pytest.mark.parametrize(
    ("seconds", "state"), [(0.2, IDLE), (0.25, ("busy", "CPUBusy")), (5.0, ("busy", "CPUBusy"))]
)
def test_the_cpu_counts(card: Watched, seconds: float, state: tuple[str, str]) -> None:
    """A twentieth of a core by the processes on the card is work; a loop that waits takes less."""
    card.cpu[1] = seconds
    card.pass_()

    assert state == card.state("a")


def test_the_cpu_of_several_processes_is_added_up(card: Watched) -> None:
    """Each takes too little alone, together they compute."""
    card.start("a", 7)
    card.holds[7] = MIB
    card.settle(2)
    card.cpu |= {1: 0.15, 7: 0.15}
    card.pass_()

    assert ("busy", "CPUBusy") == card.state("a")


def test_a_server_that_spins_may_leave_its_cpu_out() -> None:
    """Of a pod that says so only the card counts, and its CPU time is not even read."""
    card = Watched()
    card.add("a", 1, cpu_ignored=frozenset({"main"}))
    card.settle()
    card.cpu[1] = 5.0
    card.pass_()

    assert IDLE == card.state("a")


def test_cpu_that_cannot_be_read_is_unknown(card: Watched) -> None:
    """Without the CPU time of any of its processes nobody knows whether a pod computes."""
    card.silent.add(1)
    card.pass_()

    assert UNKNOWN == card.state("a")
    assert IDLE == card.state("b")


SPOILED: dict[str, Callable[[Watched], None]] = {
    "an unreadable card": lambda card: setattr(card, "listed", False),
    "a driver that does not tell": lambda card: setattr(card, "answers", False),
    "MPS": lambda card: card.mps.add(1),
}


@pytest.mark.parametrize("trouble", SPOILED)
def test_what_cannot_be_measured_is_unknown(card: Watched, trouble: str) -> None:
    """Where the card does not tell, everybody on it is unknown, and says why."""
    SPOILED[trouble](card)
    card.pass_()

    assert UNKNOWN == card.state("a") == card.state("b")
    assert card.track("a").why


def test_time_begins_anew_after_unknown(card: Watched) -> None:
    """What was idle before a look that failed is not added to what is idle after it."""
    card.answers = False
    card.pass_()
    card.answers = True
    card.settle(3)

    assert IDLE == card.state("a")
    assert 10.0 == card.idle_seconds("a")


def test_garbled_figures_count_for_nothing(card: Watched) -> None:
    """With entries of zombies in it the whole answer is worth nothing."""
    card.pass_([2], garbled=True)

    assert UNKNOWN == card.state("a") == card.state("b")


def test_a_hole_begins_anew(card: Watched) -> None:
    """
    An answer that does not follow the one before leaves time in which there may have been work.
    """
    card.pass_(hole=True)

    assert UNKNOWN == card.state("a")


def test_work_in_a_look_after_a_hole_is_work(card: Watched) -> None:
    """Busy is certain also where nobody knows what was before."""
    card.pass_([1], hole=True)

    assert BUSY == card.state("a")


def test_silence_is_unknown(card: Watched) -> None:
    """Nobody is idle on a card of which nothing was heard for three intervals."""
    assert card.observation is not None
    work = card.observation.sample.cards[0].work
    card.now += POLICY.gap_seconds
    card.look(work)
    before = card.state("a")
    card.now += 0.1
    card.look(work)

    assert (IDLE, UNKNOWN) == (before, card.state("a"))


def test_a_restart_begins_anew(card: Watched) -> None:
    """A new agent knows of nobody that he is idle."""
    card.restart_agent()
    card.pass_()

    assert UNKNOWN == card.state("a")


def test_a_card_that_is_busy_alone_is_suspicious(card: Watched) -> None:
    """
    A card that says it is busy while no process is makes everybody unknown at once; once is
    forgiven.
    """
    card.pass_(percent=5)
    during = card.state("a")
    card.pass_()

    assert (UNKNOWN, IDLE) == (during, card.state("a"))
    assert 20.0 == card.idle_seconds("a")


def test_a_card_that_stays_busy_alone_has_somebody(card: Watched) -> None:
    """After half a minute of load that is nobody's, what was idle before counts no more."""
    for _ in range(6):
        card.pass_(percent=90)
    card.pass_()
    card.pass_()

    assert IDLE == card.state("a")
    assert 5.0 == card.idle_seconds("a")


def test_a_busy_neighbour_explains_the_card(card: Watched) -> None:
    """Load that belongs to a process that is known makes nobody else unknown."""
    for _ in range(8):
        card.pass_([2], percent=90)

    assert (IDLE, BUSY) == (card.state("a"), card.state("b"))


def test_a_process_of_the_node_explains_the_card(card: Watched) -> None:
    """So does load of a process that is known to belong to no pod."""
    card.living[9] = occupant(9, None, None)
    card.holds[9] = MIB
    for _ in range(8):
        card.pass_([9], percent=90)

    assert IDLE == card.state("a")


def test_a_worker_on_no_list_is_looked_up(card: Watched) -> None:
    """A process that has started since the list was made works for its pod."""
    card.start("a", 7)
    card.pass_([7])

    assert (BUSY, IDLE) == (card.state("a"), card.state("b"))


def test_a_worker_that_has_ended_may_be_anybodys(card: Watched) -> None:
    """A process that came, worked and went between two lists leaves nobody idle."""
    card.pass_([7])

    assert UNKNOWN == card.state("a") == card.state("b")
    assert "process 7" in card.track("a").why


def test_on_an_instance_all_work(card: Watched) -> None:
    """Where nobody tells processes apart, work is everybody's."""
    card.pass_(None, percent=0.01)

    assert BUSY == card.state("a") == card.state("b")


def test_an_instance_that_rests_is_idle(card: Watched) -> None:
    """An instance without any work makes its pods idle."""
    card.pass_(None, percent=0.0)

    assert IDLE == card.state("a")


def test_a_pod_that_hides_its_memory_is_unknown(card: Watched) -> None:
    """What holds an amount that the driver does not say may be loading."""
    card.holds[1] = None
    card.pass_()

    assert UNKNOWN == card.state("a")


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
    Of a worker whose cgroup shows no pod the container decides, and nobody is known by a container
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
