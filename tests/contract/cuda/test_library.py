"""The libraries as files: their names, their symbols, and what the sanitizers say."""

import re
import subprocess
from pathlib import Path

import pytest

from simulator.cuda import build
from simulator.nvml.state import State
from tests.support.cuda_client import CudaProgram

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
