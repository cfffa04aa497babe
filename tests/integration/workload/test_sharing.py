"""Several workloads on one card: who dies, who lives, and what caps change about it."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufence.quantity import GIB, MIB
from simulator.nvml.state import State
from tests.support.observing import eventually
from tests.support.workload import Program

DONE = "holding on"


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State.create(tmp_path / "cards", "T4,L4")


@pytest.fixture
def programs() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def alive(state: State) -> dict[int, int]:
    """Return what each living process holds on the first card."""
    return {use.pid: use.memory for use in state.cards[0].uses}


def test_the_second_dies_and_the_first_lives(state: State) -> None:
    """Without caps whoever allocates beyond the card dies of it, not whoever holds too much."""
    with Program(state.path, "--framework", "torch", "hold 12Gi") as first:
        first.until(DONE)
        with Program(state.path, "--framework", "torch", "hold 2Gi; grow 3Gi; exit 0") as second:
            code, complaint = second.end()

        assert 1 == code
        assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB" in complaint
        assert {first.pid: 12 * GIB} == alive(state)


def test_with_caps_both_stay_inside(state: State) -> None:
    """With a cap each the greedy one dies of his own limit while there is room on the card."""
    cap = {"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.4"}
    with Program(state.path, "--framework", "torch", "hold 5Gi", variables=cap) as first:
        first.until(DONE)
        with Program(
            state.path, "--framework", "torch", "hold 5Gi; grow 3Gi", variables=cap
        ) as second:
            code, complaint = second.end()

        assert 1 == code
        assert "5.83 GiB allowed by per_process_memory_fraction" in complaint
        assert {first.pid: 5 * GIB} == alive(state)
        assert state.cards[0].room.free > 8 * GIB


def test_growers_never_exceed_the_card(state: State, programs: contextlib.ExitStack) -> None:
    """Eight processes that grow at once fill the card and never overfill it."""
    crowd = [
        programs.enter_context(
            Program(state.path, "--on-oom", "wait", "grow 40Gi/s to 4Gi; hold 4Gi")
        )
        for _ in range(8)
    ]
    for program in crowd:
        program.until(": no cap")
    most = 0

    def is_full() -> bool:
        nonlocal most
        room = state.cards[0].room
        most = max(most, room.reserved + room.taken)
        return room.free < 2 * GIB and 8 == len(alive(state))

    assert eventually(is_full)
    assert most <= state.cards[0].memory


def test_patience_is_rewarded(state: State) -> None:
    """A process that waits for memory goes on when its neighbour leaves."""
    with Program(state.path, "hold 10Gi") as first:
        first.until(DONE)
        with Program(state.path, "--on-oom", "wait", "hold 8Gi; exit 0") as second:
            second.until("Waiting for memory.")
            first.signal(signal.SIGKILL)

            assert (0, "") == second.end()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_memory_is_free_however_a_process_ends(state: State, number: int, code: int) -> None:
    """SIGTERM and SIGINT end it in order, SIGKILL does not ask, the memory is free either way."""
    with Program(state.path, "--context", "300Mi", "hold 2Gi") as program:
        program.until(DONE)
        before = alive(state)
        program.signal(number)
        ended, _ = program.end()

        assert {program.pid: 2 * GIB + 300 * MIB} == before
        assert code == ended
        assert {} == alive(state)


def test_a_deaf_process_survives_sigterm(state: State) -> None:
    """A process may ignore SIGTERM, as some do, and only SIGKILL ends it."""
    with Program(state.path, "--on-term", "ignore", "hold 1Gi; after 300ms hold 2Gi") as program:
        program.until("hold 1Gi")
        program.signal(signal.SIGTERM)
        program.until("hold 2Gi")

        assert {program.pid: 2 * GIB} == alive(state)
        program.signal(signal.SIGKILL)
        assert -signal.SIGKILL == program.end()[0]


def test_workers_take_as_much_each(state: State) -> None:
    """Forked workers are processes of their own with the same memory, and end with their parent."""
    with Program(state.path, "--context", "200Mi", "hold 1Gi; fork 3") as program:
        assert eventually(lambda: 4 == len(alive(state)))
        held = alive(state)
        workers = set(held) - {program.pid}
        program.signal(signal.SIGTERM)
        code, _ = program.end()

        assert 143 == code
        assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)  # noqa: PTH110 - short


def test_workers_die_with_a_killed_parent(state: State) -> None:
    """No worker outlives a parent that was killed."""
    with Program(state.path, "hold 1Gi; fork 2") as program:
        assert eventually(lambda: 3 == len(alive(state)))
        program.signal(signal.SIGKILL)

        assert eventually(lambda: {} == alive(state))


def test_a_worker_may_die_of_its_own(state: State) -> None:
    """Where the card has no room for another worker, that worker dies and the parent goes on."""
    with Program(state.path, "hold 6Gi; fork 2; after 300ms busy 10%; exit 0") as program:
        code, complaint = program.end()

        assert 0 == code
        assert 1 == complaint.count("out of memory")
        assert any("ended with 1" in line for line in program.lines)
