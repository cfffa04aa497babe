"""Programs whose control group the driver limits."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpufence.quantity import MIB
from simulator.nvml.groups import GROUP, GroupTree
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from tests.support.driver import CudaProgram, set_limit

CONTEXT = 300
USABLE = 40960 - 625
OUT_OF_MEMORY = 2
LIMIT = 3000
BOTH = pytest.mark.parametrize("kind", [Memacct.MISC, Memacct.DMEM], ids=["misc", "dmem"])

Start = Callable[..., CudaProgram]


@pytest.fixture
def tree(tmp_path: Path) -> GroupTree:
    return GroupTree(tmp_path / "cgroup")


def limit(machine: State, group: Path, mebibytes: int = LIMIT) -> None:
    set_limit(machine.path, group, mebibytes * MIB)


def start_in(start: Start, group: Path) -> CudaProgram:
    return start(variables={GROUP: str(group)})


def sizes(program: CudaProgram) -> list[int]:
    """Ask for what is free, the total beside it, and the device's size, in MiB."""
    _, free, total = program("room()")
    size = program("given(driver.cuDeviceTotalMem_v2, 0)")[1]
    return [one // MIB for one in (free, total, size)]


@BOTH
def test_a_limit_is_the_end(machine: State, start: Start, tree: GroupTree, kind: Memacct) -> None:
    """What fits the limit less the context succeeds, and the next is out of memory."""
    machine.groups.memacct = kind
    group = tree.add("pod/leaf")
    limit(machine, group)
    program = start_in(start, group)
    fitting = program(f"take({LIMIT - CONTEXT} * MIB)")[0]
    next_one = program("take(2 * MIB)")[0]

    assert [0, OUT_OF_MEMORY] == [fitting, next_one]


@BOTH
def test_what_was_freed_can_be_had_again(
    machine: State, start: Start, tree: GroupTree, kind: Memacct
) -> None:
    """Freed memory no longer counts, and an ended program's does not either."""
    machine.groups.memacct = kind
    group = tree.add("pod/leaf")
    limit(machine, group)
    first = start_in(start, group)
    first("held = take(2000 * MIB)")
    refused = first("take(2000 * MIB)")[0]
    first("freed = give(held[1])")
    again = first("take(2000 * MIB)")[0]
    first.close()
    second = start_in(start, group)

    assert [OUT_OF_MEMORY, 0] == [refused, again]
    assert 0 == second("take(2000 * MIB)")[0]


@BOTH
def test_processes_share_their_groups_limit(
    machine: State, start: Start, tree: GroupTree, kind: Memacct
) -> None:
    """Two processes of one group have one limit, and a third of another group has its own."""
    machine.groups.memacct = kind
    group, other = tree.add("pod/leaf"), tree.add("pod/other")
    limit(machine, group)
    one, two, third = start_in(start, group), start_in(start, group), start_in(start, other)
    taken = one(f"take({LIMIT - 2 * CONTEXT} * MIB)")[0]

    assert [0, OUT_OF_MEMORY] == [taken, two("take(2 * MIB)")[0]]
    assert 0 == third("take(30000 * MIB)")[0]


@pytest.mark.parametrize(
    ("kind", "code"), [(Memacct.MISC, 0), (Memacct.DMEM, OUT_OF_MEMORY)], ids=["misc", "dmem"]
)
def test_limits_nest_on_dmem_only(
    machine: State, start: Start, tree: GroupTree, kind: Memacct, code: int
) -> None:
    """A limit above a limited group bounds it on dmem, and is shadowed by it on misc."""
    machine.groups.memacct = kind
    group = tree.add("pod/leaf")
    limit(machine, tree.root / "pod", 1000)
    limit(machine, group)
    program = start_in(start, group)

    assert code == program("take(2000 * MIB)")[0]


@BOTH
def test_a_limit_above_is_enforced(
    machine: State, start: Start, tree: GroupTree, kind: Memacct
) -> None:
    """The limit of a pod's group holds for a container that has none."""
    machine.groups.memacct = kind
    group = tree.add("pod/leaf")
    limit(machine, tree.root / "pod")
    program = start_in(start, group)

    assert [0, OUT_OF_MEMORY] == [program(f"take({one} * MIB)")[0] for one in (2000, 1000)]


@pytest.mark.parametrize("capped", [False, True], ids=["uncapped", "capped"])
def test_a_limited_program_sees_its_limit(
    machine: State, start: Start, tree: GroupTree, *, capped: bool
) -> None:
    """The total beside what is free is the limit, and the device's size where totals are capped."""
    group = tree.add("pod/leaf")
    limit(machine, group)
    machine.groups.totals_capped = capped
    program = start_in(start, group)

    assert [LIMIT - CONTEXT, LIMIT, LIMIT if capped else USABLE] == sizes(program)


@pytest.mark.parametrize(
    ("kind", "seen"),
    [(Memacct.MISC, [LIMIT - CONTEXT, LIMIT]), (Memacct.DMEM, [USABLE - CONTEXT, USABLE])],
    ids=["misc", "dmem"],
)
def test_a_limit_above_is_not_seen_on_dmem(
    machine: State, start: Start, tree: GroupTree, kind: Memacct, seen: list[int]
) -> None:
    """Under a pod's limit a program sees the whole card on dmem, and that limit on misc."""
    machine.groups.memacct = kind
    group = tree.add("pod/leaf")
    limit(machine, tree.root / "pod")

    assert seen == sizes(start_in(start, group))[:2]


def test_what_is_free_is_also_the_cards(machine: State, start: Start, tree: GroupTree) -> None:
    """Where others have left less than the limit, that is what is free."""
    group = tree.add("pod/leaf")
    limit(machine, group)
    machine.processes.put(machine.find("0"), 1000, (USABLE - 1000) * MIB, kept=True)

    assert [1000 - CONTEXT, LIMIT] == sizes(start_in(start, group))[:2]


def test_nothing_leaves_no_context(machine: State, start: Start, tree: GroupTree) -> None:
    """A limit of nothing lets no program have a context."""
    group = tree.add("pod/leaf")
    limit(machine, group, 0)
    program = start(device=None, variables={GROUP: str(group)})

    assert [0, OUT_OF_MEMORY] == [program("init()"), program("use(0)")]


def test_managed_memory_is_not_limited(machine: State, start: Start, tree: GroupTree) -> None:
    """Managed memory passes every limit."""
    group = tree.add("pod/leaf")
    limit(machine, group)
    program = start_in(start, group)

    assert 0 == program("given(driver.cuMemAllocManaged, wide(9000 * MIB), 1)")[0]
