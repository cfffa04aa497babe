"""The driver's library, its devices and the runtime above it."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.cuda import build
from simulator.cuda.build import RUNTIMES
from simulator.nvml.state import State
from tests.contract.cuda.conftest import Watched
from tests.support.driver import CudaProgram

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1")
SESSION = (
    "held = [take(size * MIB)[1] for size in (1, 2, 3, 500)] + [take(1000)[1] for _ in range(50)]",
    "texts = [echo(held[0], b'abc'), text(driver.cuDeviceGetName, 0), uuid(0)]",
    "refused = [take(10**15)[0], give(1), give(held[0] + 1)]",
    "freed = [give(address) for address in held] + [give(held[0])]",
    "churn = lambda: use(0) or [give(take(6 * MIB)[1]) for _ in range(50)]",
    "turns = in_threads(4, churn)",
    "address, handle = reserve(64 * MIB)[1], create(20 * MIB)[1]",
    "mapped = [map_memory(address, 20 * MIB, handle), allow(address, 20 * MIB), release(handle)]",
    "unmapped = [unmap(address, 20 * MIB), release(handle)]",
    "pool = make_pool()",
    "pieces = [pooled(9 * MIB, pool)[1], pooled(100)[1], pooled(7 * MIB)[1]]",
    "given_back = [give_pooled(pieces[1]), give(pieces[2])]",
    "gone = [driver.cuMemPoolDestroy(wide(pool)), driver.cuMemPoolDestroy(wide(pool))]",
    "found = [entry('cuMemAlloc', 13000)[0], entry('cu' * 500, 13000)[0]]",
    "child = in_child(lambda: [init(), take(MIB)[0]])",
    "last = [leave(0), take(MIB)[0], use(1), take(MIB)[0]]",
)


def dynamic(path: Path) -> str:
    return subprocess.check_output(["readelf", "--wide", "-d", str(path)], text=True)


def exported(path: Path) -> set[str]:
    text = subprocess.check_output(["nm", "-D", "--defined-only", str(path)], text=True)
    return {line.split()[-1] for line in text.splitlines() if " A " not in line}


@pytest.mark.parametrize("name", [build.DRIVER, *map(build.runtime, build.RUNTIMES)])
def test_a_library_has_the_name_it_is_looked_for_by(name: str) -> None:
    """Each library carries its SONAME, which is what makes ours be taken instead of another."""
    assert f"soname: [{name}]" in dynamic(build.library_folder() / name)


def test_the_driver_shows_its_entries_alone() -> None:
    """Of the driver only functions of the driver's interface are visible."""
    names = exported(build.library_folder() / build.DRIVER)

    assert {"cuInit", "cuMemAlloc_v2"} <= names
    assert set() == {name for name in names if not re.fullmatch(r"cu[A-Z]\w+", name)}


def test_no_check_of_the_driver_is_answered() -> None:
    """The entry by which NVIDIA's own runtime recognises a driver does not exist."""
    assert "cuGetExportTable" not in exported(build.library_folder() / build.DRIVER)


@pytest.mark.parametrize("major", build.RUNTIMES)
def test_a_runtimes_symbols_have_its_version(major: int) -> None:
    """Frameworks ask for symbols of the version that is named as the library is."""
    name = build.runtime(major)
    names = exported(build.library_folder() / name)

    assert f"cudaMalloc@@{name}" in names
    assert set() == {
        one for one in names if not re.fullmatch(rf"(__)?cuda[A-Z]\w+@@{re.escape(name)}", one)
    }


@pytest.mark.nightly
def test_the_sanitizers_find_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    A session that uses every part well and badly shows no invalid access and nothing undefined.
    """
    folder = build.library_folder(cache=tmp_path_factory.getbasetemp().parent, flags=SANITIZERS)
    runtimes = [
        subprocess.check_output(["cc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    variables = {
        "LD_PRELOAD": ":".join([*runtimes, str(folder / build.runtime(13))]),
        "LD_LIBRARY_PATH": str(folder),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    machine = State.create(tmp_path / "cards", "2xT4")
    program = CudaProgram(machine.path, variables=variables)
    for line in SESSION:
        program(line)
    program.close_input()

    assert 0 == program.process.wait(60)
    assert "" == program.complaints()
    program.close()


CONTEXT = 300
NO_DEVICE = 100
INVALID_DEVICE = 101

Start = Callable[..., CudaProgram]


def test_a_card_is_the_same_by_both_names(program: CudaProgram, machine: State) -> None:
    """Name, UUID, size and place of a card are those that NVML shows."""
    uuids = [card.uuid.removeprefix("GPU-").replace("-", "") for card in machine.cards]

    assert uuids == [program(f"uuid({device})") for device in (0, 1)]
    assert machine.cards[0].name == program("text(driver.cuDeviceGetName, 0)")
    assert "0000:05:00.0" == program("text(driver.cuDeviceGetPCIBusId, 1)")
    assert [0, machine.cards[0].room.usable] == program("given(driver.cuDeviceTotalMem_v2, 0)")
    assert [8, 0] == [program("attribute(75)"), program("attribute(76)")]


@pytest.mark.parametrize(
    ("visible", "cards"),
    [
        ("0", [0]),
        ("1", [1]),
        ("1,0", [1, 0]),
        (" 1 , 0 ", [1, 0]),
        ("1,-1,0", [1]),
        ("1,7,0", [1]),
        ("uuid1", [1]),
        ("uuid1,uuid0", [1, 0]),
    ],
)
def test_a_program_sees_what_it_was_given(
    visible: str, cards: list[int], start: Start, machine: State
) -> None:
    """CUDA_VISIBLE_DEVICES chooses cards, in its order, up to the first name that means none."""
    for card in (0, 1):
        visible = visible.replace(f"uuid{card}", machine.cards[card].uuid)
    one = start(variables={"CUDA_VISIBLE_DEVICES": visible})
    seen = [one(f"uuid({device})") for device in range(one("devices()"))]

    assert [machine.cards[card].uuid[4:].replace("-", "") for card in cards] == seen


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("CUDA_VISIBLE_DEVICES", text) for text in ("", "-1", "none", "7", "GPU-", "0,0")),
        ("GPUFENCE_SIMULATOR_STATE", "/nowhere"),
    ],
)
def test_a_program_may_see_no_card(name: str, text: str, start: Start, nvml: Watched) -> None:
    """
    A list that begins with no card, that is ambiguous or names one twice, leaves none; where there
    is no machine, stderr says so.
    """
    one = start(device=None, variables={name: text})
    code = one("init()")
    one.close_input()

    assert NO_DEVICE == code
    assert {} == nvml.pids()
    remedy = "remedy: python -m simulator nvml create"
    assert (remedy in one.complaints()) == (text == "/nowhere")


def test_a_card_that_is_not_there_is_refused(program: CudaProgram) -> None:
    """A number beyond the visible cards is no device."""
    assert [INVALID_DEVICE] * 2 == program("[use(2), use(-1)]")


def test_an_instance_is_a_device(machine: State, start: Start, nvml: Watched) -> None:
    """Of a card in MIG mode a program sees the instance it was given, with its size."""
    machine.cards[1].cut("3g.20gb", "1g.5gb")
    small = machine.cards[1].instances[1]
    one = start(variables={"CUDA_VISIBLE_DEVICES": small.uuid})
    one("held = take(1000 * MIB)")

    assert [1, small.memory] == [one("devices()"), one("room()")[2]]
    assert CONTEXT + 1000 == machine.processes.room(small.place).taken >> 20
    assert {} == nvml.pids(0)


def test_a_cut_card_is_its_first_instance(machine: State, start: Start) -> None:
    """Without a choice, a card in MIG mode is its first instance, as for CUDA itself."""
    machine.cards[0].cut("3g.20gb", "1g.5gb")
    one = start()

    assert machine.cards[0].instances[0].memory == one("room()")[2]
    assert machine.cards[0].instances[0].uuid[4:].replace("-", "") == one("uuid(0)")


NOT_SUPPORTED = 801


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("cudaLaunchKernel(None, None)", "kernels do not run on simulated cards"),
        ("cudaGraphInstantiate()", "cudaGraphInstantiate is not simulated"),
    ],
)
def test_what_is_not_simulated_fails_loudly(one: CudaProgram, call: str, words: str) -> None:
    """A kernel, or a call that means nothing for memory, fails, and stderr says why."""
    code = one(f"runtime.{call}")
    one.close_input()

    assert NOT_SUPPORTED == code
    assert words in one.complaints()


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
    assert [500, 0] == program("entry('cuNothing', 13000)")
