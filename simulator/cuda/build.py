"""
Compile driver and runtimes, keep them in the user's cache, and say how a program finds them.

A program looks for the driver by name. The runtime of a framework is named by the framework's own
libraries with a folder of its wheel; ours has the same SONAME and symbol versions and is loaded
before, so that NVIDIA's is not loaded at all.
"""

from __future__ import annotations

from pathlib import Path

from gpufence.names import SIMULATOR_STATE
from simulator.compiled import SharedLibrary, compiled
from simulator.nvml.build import CURRENT, LIBRARY_VARIABLE, library_path
from simulator.nvml.build import SOURCES as NVML_SOURCES

DRIVER = "libcuda.so.1"
RUNTIMES = {12: 12090, 13: 13020}
"""The majors of CUDA whose runtime there is, and which release it says it is."""

PRELOAD = "LD_PRELOAD"
CONTEXT_MIB = "GPUFENCE_SIMULATOR_CONTEXT_MIB"
SOURCES = Path(__file__).parent / "library"


def runtime(major: int) -> str:
    return f"libcudart.so.{major}"


def library_folder(*, cache: Path | None = None, flags: tuple[str, ...] = ()) -> Path:
    """Return the folder with driver and runtimes, building it if these sources were never built."""
    return compiled("cuda", (_driver(flags), *(_runtime(one, flags) for one in RUNTIMES)), cache)


def environment(
    state: Path,
    *,
    cuda: int | None = None,
    variant: str = CURRENT,
    cache: Path | None = None,
) -> dict[str, str]:
    """Return the variables to start a program with; `cuda` is the major its runtime must have."""
    folder = library_folder(cache=cache)
    preload = {PRELOAD: str(folder / runtime(cuda))} if cuda is not None else {}
    return {
        SIMULATOR_STATE: str(state.absolute()),
        LIBRARY_VARIABLE: f"{folder}:{library_path(variant, cache=cache).parent}",
        **preload,
    }


def _driver(flags: tuple[str, ...]) -> SharedLibrary:
    shared = tuple(NVML_SOURCES / name for name in ("groups.c", "records.c", "statefile.c"))
    sources = (*sorted((SOURCES / "driver").glob("*.c")), *shared)
    return SharedLibrary(DRIVER, sources, headers=(SOURCES,), flags=flags)


def _runtime(major: int, flags: tuple[str, ...]) -> SharedLibrary:
    name = runtime(major)
    return SharedLibrary(
        name,
        tuple(sorted((SOURCES / "runtime").glob("*.c"))),
        headers=(SOURCES,),
        flags=(*flags, f"-DRUNTIME_VERSION={RUNTIMES[major]}", "-Wl,-rpath,$ORIGIN"),
        links=(DRIVER,),
        versions=f"{name} {{ global: cuda*; __cuda*; local: *; }};",
    )
