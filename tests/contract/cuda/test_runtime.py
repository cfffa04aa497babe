"""The runtime over the driver, in each of its majors."""

from collections.abc import Callable

import pytest

from simulator.cuda.build import RUNTIMES
from tests.contract.cuda.conftest import Watched
from tests.support.cuda_client import CudaProgram

CONTEXT = 300
NOT_SUPPORTED = 801

Start = Callable[..., CudaProgram]


@pytest.fixture(params=RUNTIMES)
def one(request: pytest.FixtureRequest, start: Start) -> CudaProgram:
    return start(cuda=request.param, device=None)


def test_counting_takes_no_memory(one: CudaProgram, nvml: Watched) -> None:
    """Asked for the number of cards, the runtime makes no context."""
    assert [0, 2] == one("given(runtime.cudaGetDeviceCount, kind=ctypes.c_int)")
    assert {} == nvml.pids()


def test_the_runtime_begins_by_itself(one: CudaProgram, nvml: Watched) -> None:
    """The first allocation makes the context of the thread's device."""
    one("held = given(runtime.cudaMalloc, wide(1000 * MIB))")
    one("chosen = runtime.cudaSetDevice(1)")
    one("held = given(runtime.cudaMalloc, wide(500 * MIB))")

    assert {one.process.pid: CONTEXT + 1000} == nvml.pids(0)
    assert {one.process.pid: CONTEXT + 500} == nvml.pids(1)
    assert [0, 1] == one("given(runtime.cudaGetDevice, kind=ctypes.c_int)")


def test_an_error_is_remembered_once(one: CudaProgram) -> None:
    """The last error stands until it is asked for, and has a name and a text."""
    one("failed = given(runtime.cudaMalloc, wide(41000 * MIB))")
    one("runtime.cudaGetErrorString.restype = ctypes.c_char_p")
    one("runtime.cudaGetErrorName.restype = ctypes.c_char_p")

    assert [2, 2, 0] == one(
        "[runtime.cudaPeekAtLastError(), runtime.cudaGetLastError(), runtime.cudaGetLastError()]"
    )
    assert "out of memory" == one("runtime.cudaGetErrorString(2)")
    assert "cudaErrorMemoryAllocation" == one("runtime.cudaGetErrorName(2)")


def test_a_reset_frees_everything(one: CudaProgram, nvml: Watched) -> None:
    """After a reset the program is on no card, until it begins anew."""
    one("held = given(runtime.cudaMalloc, wide(1000 * MIB))")
    one("code = runtime.cudaDeviceReset()")
    during = nvml.pids()
    one("held = given(runtime.cudaMalloc, wide(10 * MIB))")

    assert {} == during
    assert {one.process.pid: CONTEXT + 10} == nvml.pids()


def test_nothing_is_an_allocation_too(one: CudaProgram) -> None:
    """The runtime answers a wish for nothing with no address and no error."""
    assert [0, 0] == one("given(runtime.cudaMalloc, wide(0))")
    assert 0 == one("runtime.cudaFree(None)")


def test_kernels_fail_loudly(one: CudaProgram) -> None:
    """The first launch fails, and stderr says why."""
    code = one("runtime.cudaLaunchKernel(None, None)")
    one.close_input()

    assert NOT_SUPPORTED == code
    assert "kernels do not run on simulated cards" in one.complaints()


def test_what_is_not_simulated_says_its_name(one: CudaProgram) -> None:
    """A call that means nothing for memory fails with its name on stderr."""
    code = one("runtime.cudaGraphInstantiate()")
    one.close_input()

    assert NOT_SUPPORTED == code
    assert "cudaGraphInstantiate is not simulated" in one.complaints()


def test_a_stream_calls_back(program: CudaProgram) -> None:
    """A function that a stream shall call is called."""
    assert ["called"] == program("call_back()")


@pytest.mark.parametrize(
    ("name", "version", "function"),
    [
        ("cuMemAlloc", 12000, "cuMemAlloc_v2"),
        ("cuMemCreate", 12000, "cuMemCreate"),
        ("cuCtxCreate", 12000, "cuCtxCreate_v2"),
        ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
        ("cuGetProcAddress", 11030, "cuGetProcAddress"),
        ("cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    ],
)
def test_entries_are_found_by_name(
    name: str, version: int, function: str, program: CudaProgram
) -> None:
    """A name without a version is the newest function that the caller's CUDA knows."""
    assert [0, program(f"address_of({function!r})")] == program(f"entry({name!r}, {version})")


def test_unknown_entries_are_not_found(program: CudaProgram) -> None:
    """A name that means nothing has no entry."""
    assert [500, 0] == program("entry('cuNothing', 13000)")
