"""Processes, threads and contexts: what a program holds is gone with it, whatever ends it."""

import signal
from collections.abc import Callable

import pytest

from tests.contract.cuda.conftest import Watched
from tests.support.driver import CudaProgram

CONTEXT = 300
NOT_INITIALIZED = 3
INVALID_CONTEXT = 201
DESTROYED = 709

Start = Callable[..., CudaProgram]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, None])
def test_a_dead_program_holds_nothing(
    number: signal.Signals | None, program: CudaProgram, nvml: Watched
) -> None:
    """Whatever ends a program, or if it ends by itself, its memory is free in the same moment."""
    program("held = take(1000 * MIB)")
    before = nvml.pids()
    if number is None:
        program.close_input()
    else:
        program.process.send_signal(number)
    program.process.wait()

    assert {program.process.pid: CONTEXT + 1000} == before
    assert ({}, 0) == (nvml.pids(), nvml.used())


def test_a_fork_cannot_use_its_parents_cards(program: CudaProgram, nvml: Watched) -> None:
    """In a process forked off after the start of CUDA every call fails, and takes nothing away."""
    program("held = take(1000 * MIB)")
    code = "in_child(lambda: [init(), use(0), take(MIB)[0], give(held[1])])"

    assert [NOT_INITIALIZED] * 4 == program(code)
    assert {program.process.pid: CONTEXT + 1000} == nvml.pids()
    assert 0 == program("take(1000 * MIB)")[0]


def test_a_fork_before_the_start_is_a_program(start: Start, nvml: Watched) -> None:
    """A child of a parent that has not begun with CUDA can."""
    one = start(device=None)

    assert [0, 0, 0] == one("in_child(lambda: [init(), use(0), take(MIB)[0]])")
    assert {} == nvml.pids()
    assert [0, 0] == one("[init(), use(0)]")


def test_a_context_is_a_threads(program: CudaProgram) -> None:
    """A new thread has no context until it takes one, and then shares the process's."""
    assert [[INVALID_CONTEXT]] == program("in_threads(1, lambda: [take(MIB)[0]])")
    assert [[0, 0]] == program("in_threads(1, lambda: [use(0), take(MIB)[0]])")


def test_threads_allocate_at_once(program: CudaProgram, nvml: Watched) -> None:
    """What several threads allocate and free at the same time adds up."""
    program(
        "churn = lambda: use(0) or [give(take(6 * MIB)[1]) or take(2 * MIB)[0] for _ in range(50)]"
    )

    assert [[0] * 50] * 8 == program("in_threads(8, churn)")
    assert {program.process.pid: CONTEXT + 8 * 50 * 2} == nvml.pids()


def test_a_released_context_takes_its_memory_along(program: CudaProgram, nvml: Watched) -> None:
    """With the last reference to its context, all that a program holds on a card is gone."""
    program("again = use(0)")
    program("held = take(1000 * MIB)")
    program("released = leave(0)")
    during = nvml.pids()
    program("released = leave(0)")

    assert {program.process.pid: CONTEXT + 1000} == during
    assert ({}, 0) == (nvml.pids(), nvml.used())
    assert DESTROYED == program("take(MIB)")[0]
    assert [0, 0] == program("[use(0), take(MIB)[0]]")


def test_a_context_of_ones_own_costs_as_much(program: CudaProgram, nvml: Watched) -> None:
    """
    Beside the primary one a program can make contexts, each of which takes memory until destroyed.
    """
    program("code, context = given(driver.cuCtxCreate_v2, 0, 0)")
    program("held = take(10 * MIB)")
    during = nvml.pids()
    program("gone = driver.cuCtxDestroy_v2(wide(context))")

    assert {program.process.pid: 2 * CONTEXT + 10} == during
    assert {program.process.pid: CONTEXT} == nvml.pids()


def test_a_program_may_look_at_itself(program: CudaProgram, nvml: Watched) -> None:
    """NVML in the same process as the driver neither hides nor loses what the process holds."""
    program("nvml = ctypes.CDLL('libnvidia-ml.so.1')")
    program("asked = [nvml.nvmlInit_v2(), nvml.nvmlShutdown(), nvml.nvmlInit_v2()]")
    program("held = take(1000 * MIB)")

    assert [0, 0, 0] == program("asked")
    assert {program.process.pid: CONTEXT + 1000} == nvml.pids()
