"""Virtual memory: addresses and memory are two things, and only memory takes the card."""

from tests.contract.cuda.conftest import Watched
from tests.support.cuda_client import CudaProgram

CONTEXT = 300
INVALID_VALUE = 1
OUT_OF_MEMORY = 2


def test_addresses_cost_nothing(program: CudaProgram, nvml: Watched) -> None:
    """More addresses than the card has memory can be reserved."""
    code, address = program("reserve(100000 * MIB)")

    assert 0 == code
    assert 0 == address % (2 << 20)
    assert {program.process.pid: CONTEXT} == nvml.pids()


def test_memory_lives_as_long_as_it_is_mapped(program: CudaProgram, nvml: Watched) -> None:
    """Released memory stays until it is unmapped."""
    program("address, handle = reserve(64 * MIB)[1], create(20 * MIB)[1]")
    program("mapped = [map_memory(address, 20 * MIB, handle), allow(address, 20 * MIB)]")
    program("released = release(handle)")
    before = nvml.pids()

    assert [0, 0, 0, 0] == program("[*mapped, released, unmap(address, 20 * MIB)]")
    assert {program.process.pid: CONTEXT + 20} == before
    assert {program.process.pid: CONTEXT} == nvml.pids()


def test_memory_that_does_not_fit_is_refused(program: CudaProgram, nvml: Watched) -> None:
    """Memory larger than what is free is out of memory, and nothing is taken."""
    assert OUT_OF_MEMORY == program("create(41000 * MIB)")[0]
    assert {program.process.pid: CONTEXT} == nvml.pids()


def test_memory_is_created_where_one_says(program: CudaProgram, nvml: Watched) -> None:
    """Memory counts on the card it was created on, whatever context is current."""
    program("held = create(20 * MIB, 1)")

    assert {program.process.pid: CONTEXT} == nvml.pids(0)
    assert {program.process.pid: 20} == nvml.pids(1)


def test_nothing_is_mapped_wrongly(program: CudaProgram) -> None:
    """
    Mapping takes reserved addresses that are not mapped, memory that is there, and whole units.
    """
    program("address, handle = reserve(8 * MIB)[1], create(4 * MIB)[1]")
    program("mapped = map_memory(address, 4 * MIB, handle)")

    assert 0 == program("mapped")
    assert [INVALID_VALUE] * 5 == program(
        "[map_memory(address, 4 * MIB, handle), map_memory(address + 6 * MIB, 4 * MIB, handle),"
        " map_memory(address + 4 * MIB, 4 * MIB, 4096), map_memory(address + 4 * MIB, 999, handle),"
        " map_memory(1 << 24, 2 * MIB, handle)]"
    )
    assert [INVALID_VALUE] * 2 == program("[allow(address + 4 * MIB, 2 * MIB), create(1000)[0]]")


def test_a_handle_is_freed_once(program: CudaProgram) -> None:
    """A handle that was released, or never given out, is refused."""
    program("handle = create(2 * MIB)[1]")

    assert [0, INVALID_VALUE, INVALID_VALUE] == program(
        "[release(handle), release(handle), release(4096)]"
    )
