"""The library as programs find it, in each variant."""

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpufence.quantity import MIB
from simulator.nvml import build, layout
from simulator.nvml.build import VARIANTS
from simulator.nvml.errors import LibraryError
from simulator.nvml.faults import FUNCTIONS
from simulator.nvml.state import State
from tests.support.driver import Client

STRUCTURES = {
    "instance": layout.InstanceLayout,
    "card": layout.CardLayout,
    "record": layout.RecordLayout,
    "account": layout.AccountLayout,
    "charge": layout.ChargeLayout,
    "limit": layout.LimitLayout,
    "fault": layout.FaultLayout,
    "state": layout.StateLayout,
}
ENUMERATIONS = {
    "KIND": layout.Liveness,
    "LIST": layout.Lists,
    "ACTION": layout.FaultAction,
    "MEMACCT": layout.Memacct,
    "LIMIT": layout.LimitStatus,
}
CONSTANTS = {
    "STATE_MAGIC": layout.MAGIC,
    "STATE_VERSION": layout.VERSION,
    "RECORD_LOCKS": layout.RECORD_LOCKS,
    "ALLOCATION_LOCK": layout.ALLOCATION_LOCK,
    "ANY_CARD": layout.ANY_CARD,
    "NO_INSTANCE": layout.NO_INSTANCE,
    "NOT_SUPPORTED_VALUE": layout.NOT_SUPPORTED,
}


def assertions() -> Iterator[str]:
    """Say in C what Python believes about the state file."""
    for name, value in CONSTANTS.items():
        yield f"{name} == {value}"
    for prefix, enumeration in ENUMERATIONS.items():
        for member in enumeration:
            yield f"{prefix}_{member.name} == {member.value}"
    for name, structure in STRUCTURES.items():
        yield f"sizeof(struct {name}) == {ctypes.sizeof(structure)}"
        for field, *_ in structure._fields_:
            described = getattr(structure, field)
            yield f"offsetof(struct {name}, {field}) == {described.offset}"
            yield f"sizeof(((struct {name} *)0)->{field}) == {described.size}"
    yield f"FUNCTION_COUNT == {len(FUNCTIONS)}"


def test_both_sides_describe_the_same_file(tmp_path: Path) -> None:
    """The C compiler agrees with Python about every offset, size and number."""
    source = tmp_path / "layout.c"
    claims = "\n".join(f'_Static_assert({claim}, "{claim}");' for claim in assertions())
    source.write_text(
        f'#include <stddef.h>\n#include "functions.h"\n#include "state.h"\n{claims}\n'
    )
    done = subprocess.run(
        ["cc", "-std=gnu11", "-fsyntax-only", f"-I{build.SOURCES}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "" == done.stderr


@pytest.mark.parametrize("variant", build.VARIANTS, ids=lambda variant: variant.name)
def test_only_functions_of_nvml_are_visible(variant: build.Variant) -> None:
    """
    The library exports functions of NVML and nothing else, and depends on the C library alone.
    """
    path = build.library_path(variant.name)
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", str(path)], text=True)
    dynamic = subprocess.check_output(["readelf", "-d", str(path)], text=True)
    names = {line.split()[-1] for line in symbols.splitlines()}

    assert names <= {*FUNCTIONS, "nvmlErrorString"}
    assert ["libc.so.6"] == [
        line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "NEEDED" in line
    ]
    assert f"soname: [{build.LIBRARY}]" in dynamic


def test_a_library_is_built_once(tmp_path: Path) -> None:
    """Several who build at once get the same whole library, as do those who ask again."""
    with ThreadPoolExecutor(3) as pool:
        paths = list(pool.map(lambda _: build.library_path(cache=tmp_path), range(3)))
    first = paths[0]
    built = first.stat().st_mtime_ns
    again = build.library_path(cache=tmp_path)

    assert {first} == {*paths, again}
    assert built == again.stat().st_mtime_ns
    assert first.stat().st_size > 10_000
    assert [first.parent] == list(tmp_path.iterdir())


def test_without_a_compiler_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a C compiler gets the remedy."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(LibraryError, match=r"no C compiler.*apt install gcc"):
        build.library_path(cache=tmp_path)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiler complains about is passed on, and no half-made library stays."""
    fake = tmp_path / "bin" / "cc"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'nothing works' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent))
    cache = tmp_path / "cache"

    with pytest.raises(LibraryError, match="nothing works"):
        build.library_path(cache=cache)
    assert [] == list(cache.iterdir())


COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
DETAIL = "nvmlDeviceGetRunningProcessDetailList"
PROTECTED = "nvmlDeviceGetConfComputeMemSizeInfo"
MEMORY_V2 = "nvmlDeviceGetMemoryInfo_v2"
LIMITS = {"nvmlDeviceGetMemoryLimits_v1", "nvmlDeviceSetMemoryLimits_v1"}
EXPORTS = {
    "615": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", DETAIL, PROTECTED, MEMORY_V2, *LIMITS},
    "current": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", DETAIL, PROTECTED, MEMORY_V2},
    "535.98": {f"{COMPUTE}_v2", PROTECTED, MEMORY_V2},
    "535.43": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", PROTECTED, MEMORY_V2},
    "525": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", MEMORY_V2},
    "450": set[str](),
    "16-byte": {f"{COMPUTE}_v3", f"{COMPUTE}_v2", DETAIL, PROTECTED, MEMORY_V2},
}
PIDS = (1000, 2000, 3000)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_exports_what_its_driver_does(start: Callable[..., Client], variant: Any) -> None:
    """Each variant has the symbols of its driver, and its version."""
    client = start(variant.name)
    found = {
        name for name in EXPORTS["615"] if "error" not in client.ask(f"function({name!r}) and None")
    }

    assert EXPORTS[variant.name] == found
    assert variant.driver == client("nvmlSystemGetDriverVersion()")


@pytest.mark.parametrize(
    ("variant", "read", "width"),
    [
        ("current", list(PIDS), 24),
        ("525", list(PIDS), 24),
        ("535.98", "NVMLLibraryMismatchError", 16),  # neither version 3, nor an NVMLError
        ("450", "NVMLLibraryMismatchError", 16),
        ("535.43", [1000, 0, 0xFFFFFFFF], 32),  # 535.43 to 535.86; only the first PID is right
        ("16-byte", [1000, 2 * MIB, 0], 16),
    ],
)
def test_what_pynvml_makes_of_a_list(
    machine: State, start: Callable[..., Client], variant: str, read: list[int] | str, width: int
) -> None:
    """Three processes are read right where entries have the layout that pynvml expects."""
    for number, pid in enumerate(PIDS, start=1):
        machine.processes.put(machine.find("0"), pid, number * MIB, kept=True)
    client = start(variant)
    answer = client.ask(f"{COMPUTE}(card(0))")
    name = f"{COMPUTE}_v3" if f"{COMPUTE}_v3" in EXPORTS[variant] else COMPUTE

    assert read == answer.get("error", [one["pid"] for one in answer.get("value", ())])
    assert [3, 3 * width] == client(f"touched({name!r}, card(0), 5)")


def test_older_functions_stand_in(machine: State, start: Callable[..., Client]) -> None:
    """Driver 535.98 answers version 2 of the list, and 450 the first memory info alone."""
    machine.processes.put(machine.find("0"), 1000, MIB, kept=True)
    middle, oldest = start("535.98"), start("450")

    assert [1000] == [one["pid"] for one in middle(f"{COMPUTE}_v2(card(0))")]
    assert {"NVMLError_FunctionNotFound"} == {
        oldest.error(f"{COMPUTE}_v2(card(0))"),
        oldest.error("nvmlDeviceGetMemoryInfo(card(0), nvmlMemory_v2)"),
    }
    assert 15360 * MIB == oldest("nvmlDeviceGetMemoryInfo(card(0)).total")
