"""For how long the owner of a process is remembered, and what that takes."""

from agent.model.use import Occupant, Owner
from agent.procfs.remembered import KEPT_SECONDS, MOST_REMEMBERED, Remembered

OWNER = ("uid-a", "c" * 64)


def process(pid: int) -> Occupant:
    return Occupant(pid, 1, 0.01, Owner(*OWNER))


def test_what_is_asked_for_stays() -> None:
    """A process for which somebody asks is remembered for ever, any other one for two minutes."""
    known = Remembered(10)
    for pid in (1, 2):
        known.put(process(pid))
    gone = []
    for turn in range(1, 4):
        known.get(1)
        gone.append(list(known.age(turn * KEPT_SECONDS)))

    assert [[], [2], []] == gone
    assert (process(1), None) == (known.get(1), known.get(2))


def test_too_many_are_forgotten_at_once() -> None:
    """Beyond its bound all of it is forgotten, whatever its age."""
    known = Remembered(1)
    for pid in (1, 2):
        known.put(process(pid))

    assert {1, 2} == set(known.age(0.0))
    assert 0 == len(known)


def test_processes_of_a_container_share_its_name() -> None:
    """What names a container is kept once, however many processes it has."""
    known = Remembered(10)
    owners = [known.put(process(pid)).owner for pid in (1, 2)]

    assert owners[0] is owners[1]


def test_a_process_that_is_dropped_is_gone() -> None:
    """What ended is forgotten in either generation."""
    known = Remembered(10)
    known.put(process(1))
    known.age(KEPT_SECONDS)
    known.drop(1)

    assert known.get(1) is None


def test_a_node_of_many_processes_fits() -> None:
    """The bound lies above 16 cards with 300 pods of 60 processes each."""
    assert 300 * 60 < MOST_REMEMBERED


def test_a_process_of_no_container_is_remembered_too() -> None:
    """What runs on the node itself is known again, with no owner."""
    known = Remembered(10)
    alone = Occupant(1, 1, 0.01, None)

    assert alone == known.put(alone) == known.get(1)
