"""Processes, threads, contexts and control groups: what ends what a program holds, or bounds it."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from gpufence.quantity import MIB
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from tests.contract.cuda.conftest import Watched
from tests.support.driver import CudaProgram, set_limit

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


USABLE = 40960 - 625
OUT_OF_MEMORY = 2
LIMIT = 3000
BOTH = pytest.mark.parametrize("kind", [Memacct.MISC, Memacct.DMEM], ids=["misc", "dmem"])


@pytest.fixture
def kind() -> Memacct:
    return Memacct.MISC


@pytest.fixture
def tree(machine: State, tmp_path: Path, kind: Memacct) -> GroupTree:
    machine.groups.memacct = kind
    return GroupTree(tmp_path / "cgroup")


def limit(machine: State, tree: GroupTree, limits: dict[str, int]) -> Path:
    """Set limits in MiB, and return the group in which programs run."""
    group = tree.add("pod/leaf")
    for name, mebibytes in limits.items():
        set_limit(machine.path, tree.root / name, mebibytes * MIB)
    return group


def start_in(start: Start, group: Path) -> CudaProgram:
    return start(variables={GROUP: str(group)})


BELOW, ABOVE = {"pod/leaf": LIMIT}, {"pod": LIMIT}


@pytest.mark.parametrize(
    ("kind", "limits", "takes", "codes"),
    [
        (Memacct.MISC, BELOW, (LIMIT - CONTEXT, 2), [0, OUT_OF_MEMORY]),
        (Memacct.DMEM, BELOW, (LIMIT - CONTEXT, 2), [0, OUT_OF_MEMORY]),
        (Memacct.MISC, ABOVE, (2000, 1000), [0, OUT_OF_MEMORY]),
        (Memacct.DMEM, ABOVE, (2000, 1000), [0, OUT_OF_MEMORY]),
        (Memacct.MISC, {"pod": 1000, **BELOW}, (2000,), [0]),
        (Memacct.DMEM, {"pod": 1000, **BELOW}, (2000,), [OUT_OF_MEMORY]),
    ],
)
def test_a_limit_is_the_end(
    machine: State,
    start: Start,
    tree: GroupTree,
    limits: dict[str, int],
    takes: tuple[int, ...],
    codes: list[int],
) -> None:
    """What fits the limit of its own or a higher group succeeds; limits nest on dmem alone."""
    program = start_in(start, limit(machine, tree, limits))

    assert codes == [program(f"take({amount} * MIB)")[0] for amount in takes]


@BOTH
def test_what_was_freed_can_be_had_again(machine: State, start: Start, tree: GroupTree) -> None:
    """Freed memory no longer counts, and an ended program's does not either."""
    group = limit(machine, tree, BELOW)
    first = start_in(start, group)
    first("held = take(2000 * MIB)")
    refused = first("take(2000 * MIB)")[0]
    first("freed = give(held[1])")
    again = first("take(2000 * MIB)")[0]
    first.close()

    assert [OUT_OF_MEMORY, 0] == [refused, again]
    assert 0 == start_in(start, group)("take(2000 * MIB)")[0]


@BOTH
def test_processes_share_their_groups_limit(machine: State, start: Start, tree: GroupTree) -> None:
    """Two processes of one group have one limit, and a third of another group has its own."""
    group = limit(machine, tree, BELOW)
    one, two, third = (start_in(start, each) for each in (group, group, tree.add("pod/other")))
    taken = one(f"take({LIMIT - 2 * CONTEXT} * MIB)")[0]

    assert [0, OUT_OF_MEMORY] == [taken, two("take(2 * MIB)")[0]]
    assert 0 == third("take(30000 * MIB)")[0]


@pytest.mark.parametrize(
    ("kind", "limits", "capped", "others", "seen"),
    [
        (Memacct.MISC, BELOW, False, 0, [LIMIT - CONTEXT, LIMIT, USABLE]),
        (Memacct.MISC, BELOW, True, 0, [LIMIT - CONTEXT, LIMIT, LIMIT]),
        (Memacct.MISC, ABOVE, False, 0, [LIMIT - CONTEXT, LIMIT, USABLE]),
        (Memacct.DMEM, ABOVE, False, 0, [USABLE - CONTEXT, USABLE, USABLE]),
        (Memacct.MISC, BELOW, False, USABLE - 1000, [1000 - CONTEXT, LIMIT, USABLE]),
    ],
    ids=["own", "totals are capped", "above", "above, unseen", "others hold the card"],
)
def test_a_limited_program_sees_its_limit(
    machine: State,
    start: Start,
    tree: GroupTree,
    limits: dict[str, int],
    others: int,
    seen: list[int],
    *,
    capped: bool,
) -> None:
    """As what is free and the total beside it, and as the device's size where totals are capped."""
    group = limit(machine, tree, limits)
    machine.groups.totals_capped = capped
    if others:
        machine.processes.put(machine.find("0"), 1000, others * MIB, kept=True)
    program = start_in(start, group)
    _, free, total = program("room()")
    size = program("given(driver.cuDeviceTotalMem_v2, 0)")[1]

    assert seen == [one // MIB for one in (free, total, size)]


def test_nothing_leaves_no_context(machine: State, start: Start, tree: GroupTree) -> None:
    """A limit of nothing lets no program have a context."""
    group = limit(machine, tree, {"pod/leaf": 0})
    program = start(device=None, variables={GROUP: str(group)})

    assert [0, OUT_OF_MEMORY] == [program("init()"), program("use(0)")]


def test_managed_memory_is_not_limited(machine: State, start: Start, tree: GroupTree) -> None:
    """Managed memory passes every limit."""
    program = start_in(start, limit(machine, tree, BELOW))

    assert 0 == program("given(driver.cuMemAllocManaged, wide(9000 * MIB), 1)")[0]
