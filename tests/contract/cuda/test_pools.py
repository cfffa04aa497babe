"""Memory in the order of streams: pools, which keep what was freed as long as they may."""

from tests.contract.cuda.conftest import Watched
from tests.support.cuda_client import CudaProgram

CONTEXT = 300
OUT_OF_MEMORY = 2
RESERVED, RESERVED_HIGH, USED, USED_HIGH = 5, 6, 7, 8


def test_a_pool_gives_back_at_once(program: CudaProgram, nvml: Watched) -> None:
    """Without a threshold, freed memory of a pool is the card's again."""
    program("held = pooled(1000 * MIB)")
    during = nvml.pids()
    program("freed = give_pooled(held[1])")

    assert {program.process.pid: CONTEXT + 1000} == during
    assert {program.process.pid: CONTEXT} == nvml.pids()


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


def test_a_full_card_refuses_pools_too(program: CudaProgram) -> None:
    """A pool cannot hold more than the card has."""
    assert OUT_OF_MEMORY == program("pooled(41000 * MIB)")[0]
    assert 0 == program("pool_number(default_pool(), 7)")


def test_a_destroyed_pool_holds_nothing(program: CudaProgram, nvml: Watched) -> None:
    """What came from a pool of one's own goes with it."""
    program("pool = make_pool()")
    program("held = pooled(1000 * MIB, pool)")
    during = nvml.pids()
    program("gone = driver.cuMemPoolDestroy(wide(pool))")

    assert {program.process.pid: CONTEXT + 1000} == during
    assert {program.process.pid: CONTEXT} == nvml.pids()


def test_pools_go_with_the_context(program: CudaProgram, nvml: Watched) -> None:
    """With the primary context what its device's pools hold is gone, kept memory included."""
    program("set = set_threshold(default_pool(), 2**40)")
    program("held = [pooled(1000 * MIB), give_pooled(pooled(500 * MIB)[1])]")
    program("left = leave(0)")

    assert ({}, 0) == (nvml.pids(), nvml.used())
