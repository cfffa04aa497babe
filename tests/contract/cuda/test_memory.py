"""Memory as it is taken: plainly, from pools, and by virtual addresses."""

from collections.abc import Callable

import pytest

from simulator.nvml.state import State
from tests.contract.cuda.conftest import Watched
from tests.support.driver import Client, CudaProgram

CONTEXT = 300
USABLE = 40960 - 625
OUT_OF_MEMORY = 2
INVALID_VALUE = 1
INVALID_CONTEXT = 201
MAP = "mapped = map_memory(address, 4 * MIB, handle)"
HOST_FREE = "driver.cuMemFreeHost(wide(held[1]))"
POOL_GONE = "driver.cuMemPoolDestroy(wide(pool))"
MAPPED = (
    "address, handle = reserve(64 * MIB)[1], create(20 * MIB)[1]; "
    "mapped = [map_memory(address, 20 * MIB, handle), allow(address, 20 * MIB)]; "
    "released = release(handle)"
)

Start = Callable[..., CudaProgram]


@pytest.mark.parametrize(
    ("take", "during", "give"),
    [
        ("held = take(1000 * MIB)", 1000, "give(held[1])"),
        ("held = [take(1000) for _ in range(2000)]", 2, "sum(give(one) for _, one in held)"),
        ("held = given(driver.cuMemHostAlloc, wide(64 * MIB), 0)", 0, HOST_FREE),
        ("held = pooled(1000 * MIB)", 1000, "give_pooled(held[1])"),
        ("pool = make_pool(); held = pooled(1000 * MIB, pool)", 1000, POOL_GONE),
        ("held = reserve(100000 * MIB)", 0, "held[0]"),
        (MAPPED, 20, "unmap(address, 20 * MIB)"),
    ],
    ids=["plain", "small ones share blocks", "host", "pool", "own pool", "addresses", "mapped"],
)
def test_memory_counts_until_it_is_given_back(
    program: CudaProgram, nvml: Watched, take: str, during: int, give: str
) -> None:
    """A context has its size, and what is taken shows beside it; mapped memory stays so."""
    for line in take.split("; "):
        program(line)
    held = nvml.pids(0), nvml.pids(1)

    assert 0 == program(give)
    assert ({program.process.pid: CONTEXT + during}, {}) == held
    assert {program.process.pid: CONTEXT} == nvml.pids()


def test_a_context_has_the_size_one_wants(start: Start, nvml: Watched) -> None:
    """The size of a context, which no simulation can know, is a variable."""
    one = start(variables={"GPUFENCE_SIMULATOR_CONTEXT_MIB": "512"})

    assert {one.process.pid: 512} == nvml.pids()


def test_accounting_knows_the_most(machine: State, start: Start, looker: Client) -> None:
    """
    The most that a program ever held stays known to the driver's accounting, also after its end.
    """
    machine.cards[0].accounting = True
    program = start()
    program("held = take(1000 * MIB)")
    program("freed = give(held[1])")
    question = f"nvmlDeviceGetAccountingStats(card(0), {program.process.pid}).maxMemoryUsage >> 20"
    during = looker(question)
    program.close()

    assert CONTEXT + 1000 == during == looker(question)


def test_the_last_of_a_card_can_be_had(program: CudaProgram) -> None:
    """All that the driver says is free can be allocated, down to whole blocks."""
    free = program("room()")[1] >> 21 << 21

    assert 0 == program(f"take({free})")[0]
    assert OUT_OF_MEMORY == program("take(2 * MIB)")[0]


def test_neighbours_share_a_card(program: CudaProgram, start: Start, nvml: Watched) -> None:
    """What one program holds, another one on the same card cannot have."""
    other = start()
    program("held = take(20000 * MIB)")
    codes = [other("take(20000 * MIB)")[0], other("take(19000 * MIB)")[0]]

    assert [OUT_OF_MEMORY, 0] == codes
    assert {
        program.process.pid: CONTEXT + 20000,
        other.process.pid: CONTEXT + 19000,
    } == nvml.pids()


def test_the_whole_machine_shares_a_card(machine: State, program: CudaProgram) -> None:
    """
    Memory that the Python side of the simulator holds is not free for the driver, nor the reverse.
    """
    machine.processes.hold(machine.find("0"), 40000 << 20)

    assert (USABLE - 40000 - CONTEXT) << 20 == program("room()")[1]
    assert (USABLE - 40000 - CONTEXT) << 20 == machine.cards[0].room.free


def test_without_a_context_nothing_is_allocated(start: Start, nvml: Watched) -> None:
    """A thread without a context can allocate nothing, and is on no card."""
    one = start(device=None)
    one("begun = init()")

    assert INVALID_CONTEXT == one("take(MIB)")[0]
    assert {} == nvml.pids()


def test_managed_memory_is_nobodys(program: CudaProgram, nvml: Watched) -> None:
    """
    Managed memory is used on the card, but charged to no process; it may be larger than the card.
    """
    program("held = given(driver.cuMemAllocManaged, wide(1000 * MIB), 1)")
    during = (nvml.pids(), nvml.used())
    program("huge = given(driver.cuMemAllocManaged, wide(80000 * MIB), 1)")

    assert ({program.process.pid: CONTEXT}, CONTEXT + 1000) == during
    assert 0 == program("huge[0]")
    assert USABLE == nvml.used()
    assert [0, 0] == program("[give(held[1]), give(huge[1])]")
    assert CONTEXT == nvml.used()


def test_an_address_tells_whose_it_is(program: CudaProgram) -> None:
    """Asked about an address within an allocation, the driver knows type, start and size."""
    program("held = take(4 * MIB)[1]")
    asked = [
        f"given(driver.cuPointerGetAttribute, {number}, wide(held + 1000))"
        for number in (2, 11, 12)
    ]

    assert [[0, 2], [0, program("held")], [0, 4 << 20]] == [program(one) for one in asked]
    assert INVALID_VALUE == program("given(driver.cuPointerGetAttribute, 2, wide(4096))")[0]


RESERVED, RESERVED_HIGH, USED, USED_HIGH = 5, 6, 7, 8


def test_a_threshold_keeps_memory(program: CudaProgram, nvml: Watched) -> None:
    """A pool with a threshold keeps so much of what was freed, and gives it out again."""
    program("set = set_threshold(default_pool(), 600 * MIB)")
    program("held = pooled(1000 * MIB)")
    program("freed = give_pooled(held[1])")
    kept = nvml.pids()
    program("held = pooled(500 * MIB)")

    assert {program.process.pid: CONTEXT + 600} == kept == nvml.pids()
    assert [600 << 20, 1000 << 20, 500 << 20, 1000 << 20] == [
        program(f"pool_number(default_pool(), {number})")
        for number in (RESERVED, RESERVED_HIGH, USED, USED_HIGH)
    ]


def test_a_pool_can_be_trimmed(program: CudaProgram, nvml: Watched) -> None:
    """Trimmed, a pool keeps what it shall, and never less than is in use."""
    program("set = set_threshold(default_pool(), 2**40)")
    program("held, freed = pooled(100 * MIB), give_pooled(pooled(900 * MIB)[1])")
    before = nvml.pids()
    program("code = driver.cuMemPoolTrimTo(wide(default_pool()), wide(0))")

    assert {program.process.pid: CONTEXT + 1000} == before
    assert {program.process.pid: CONTEXT + 100} == nvml.pids()


def test_pools_go_with_the_context(program: CudaProgram, nvml: Watched) -> None:
    """With the primary context what its device's pools hold is gone, kept memory included."""
    program("set = set_threshold(default_pool(), 2**40)")
    program("held = [pooled(1000 * MIB), give_pooled(pooled(500 * MIB)[1])]")
    program("left = leave(0)")

    assert ({}, 0) == (nvml.pids(), nvml.used())


def test_memory_is_created_where_one_says(program: CudaProgram, nvml: Watched) -> None:
    """Memory counts on the card it was created on, whatever context is current."""
    program("held = create(20 * MIB, 1)")

    assert {program.process.pid: CONTEXT} == nvml.pids(0)
    assert {program.process.pid: 20} == nvml.pids(1)


WRONG_MAPS = (
    "[map_memory(address, 4 * MIB, handle), map_memory(address + 6 * MIB, 4 * MIB, handle),"
    " map_memory(address + 4 * MIB, 4 * MIB, 4096), map_memory(address + 4 * MIB, 999, handle),"
    " map_memory(1 << 24, 2 * MIB, handle), allow(address + 4 * MIB, 2 * MIB), create(1000)[0]]"
)


@pytest.mark.parametrize(
    ("before", "asked", "expected", "held"),
    [
        (("held = take(39000 * MIB)",), "take(1100 * MIB)[0]", OUT_OF_MEMORY, 39000),
        (
            ("held, other = take(4 * MIB)[1], take(4 * MIB)[1]", "freed = give(held)"),
            "[give(held), give(other + 512), give(4096), give(0)]",
            [INVALID_VALUE] * 3 + [0],
            4,
        ),
        ((), "[take(0)[0], take(2**64 - 1)[0]]", [INVALID_VALUE, OUT_OF_MEMORY], 0),
        ((), "[pooled(41000 * MIB)[0], pool_number(default_pool(), 7)]", [OUT_OF_MEMORY, 0], 0),
        ((), "create(41000 * MIB)[0]", OUT_OF_MEMORY, 0),
        (
            ("handle = create(2 * MIB)[1]",),
            "[release(handle), release(handle), release(4096)]",
            [0, INVALID_VALUE, INVALID_VALUE],
            0,
        ),
        (
            ("address, handle = reserve(8 * MIB)[1], create(4 * MIB)[1]", MAP),
            WRONG_MAPS,
            [INVALID_VALUE] * 7,
            4,
        ),
        (("held = take(MIB)[1]",), "echo(held, b'sixteen bytes of')", "sixteen bytes of", 2),
    ],
    ids=[
        *("what does not fit", "what was freed, or never was given", "no size at all"),
        *("a pool larger than the card", "a handle larger than the card", "a handle freed twice"),
        *("what is mapped already, not reserved, not there or no unit", "small contents"),
    ],
)
def test_what_is_refused_leaves_all_as_it_was(
    program: CudaProgram,
    nvml: Watched,
    before: tuple[str, ...],
    asked: str,
    expected: object,
    held: int,
) -> None:
    """The code says so, and the program holds what it held before."""
    for line in before:
        program(line)

    assert expected == program(asked)
    assert {program.process.pid: CONTEXT + held} == nvml.pids()
