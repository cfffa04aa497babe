"""The library as a file: its layout against the Python side's, its symbols and how it is built."""

import ctypes
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulator.nvml import build, layout
from simulator.nvml.errors import LibraryError
from simulator.nvml.faults import FUNCTIONS

STRUCTURES = {
    "instance": layout.InstanceLayout,
    "card": layout.CardLayout,
    "record": layout.RecordLayout,
    "account": layout.AccountLayout,
    "fault": layout.FaultLayout,
    "state": layout.StateLayout,
}
ENUMERATIONS = {
    "KIND": layout.Liveness,
    "LIST": layout.Lists,
    "ACTION": layout.FaultAction,
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
    """Asked again, the cache answers with the same file."""
    first = build.library_path(cache=tmp_path)
    built = first.stat().st_mtime_ns
    again = build.library_path(cache=tmp_path)

    assert (first, built) == (again, again.stat().st_mtime_ns)
    assert [first.parent] == list(tmp_path.iterdir())


def test_builders_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Several who build at once all get the same whole library and leave nothing else behind."""
    with ThreadPoolExecutor(3) as pool:
        paths = list(pool.map(lambda _: build.library_path(cache=tmp_path), range(3)))

    assert 1 == len(set(paths))
    assert paths[0].stat().st_size > 10_000
    assert [paths[0].parent] == list(tmp_path.iterdir())


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
