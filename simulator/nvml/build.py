"""
Compile the library once per variant, keep it in the user's cache, and say how a client finds it.

A variant is the same library as an older, or odder, driver ships it: fewer symbols, other widths.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpufence.errors import InvalidError, Problem
from gpufence.names import SIMULATOR_STATE
from simulator.compiled import SharedLibrary, compiled

LIBRARY = "libnvidia-ml.so.1"

LIBRARY_VARIABLE = "LD_LIBRARY_PATH"
SOURCES = Path(__file__).parent / "library"


@dataclass(frozen=True)
class Variant:
    """One driver's library; `without` and `widths` are the macros of `library/library.h`."""

    name: str
    driver: str
    cuda: int
    about: str
    macros: dict[str, int] = field(default_factory=dict)


CURRENT = "current"
LIMITED = "615"
VARIANTS = (
    Variant(CURRENT, "580.95.05", 13000, "every symbol, version 3 lists of 24 bytes an entry"),
    Variant(
        LIMITED,
        "615.71.09",
        13040,
        "also sets and reads memory limits by control group, as none before 615 does",
        {"MEMORY_LIMITS": 1},
    ),
    Variant(
        "535.98",
        "535.98",
        12020,
        "no version 3 lists, no detail list",
        {"LIST_V3": 0, "DETAIL_LIST": 0},
    ),
    Variant(
        "535.43",
        "535.43.02",
        12020,
        "version 3 lists of 32 bytes an entry, no detail list",
        {"LIST_V3_ENTRY": 32, "DETAIL_LIST": 0},
    ),
    Variant(
        "525",
        "525.147.05",
        12000,
        "no detail list",
        {"DETAIL_LIST": 0, "PROTECTED_MEMORY": 0},
    ),
    Variant(
        "450",
        "450.248.02",
        11000,
        "only the unversioned lists and memory info",
        {
            "LIST_V3": 0,
            "LIST_V2": 0,
            "DETAIL_LIST": 0,
            "PROTECTED_MEMORY": 0,
            "MEMORY_INFO_V2": 0,
        },
    ),
    Variant(
        "16-byte", "610.57", 13000, "version 3 lists of 16 bytes an entry", {"LIST_V3_ENTRY": 16}
    ),
)


def find_variant(name: str) -> Variant:
    for variant in VARIANTS:
        if variant.name == name:
            return variant
    choices = ", ".join(variant.name for variant in VARIANTS)
    raise InvalidError(Problem("variant", name, "is not known", f"use one of {choices}"))


def library_path(variant: str = CURRENT, *, cache: Path | None = None) -> Path:
    """Return the compiled library, building it if no earlier build of these sources is there."""
    chosen = find_variant(variant)
    macros = {
        "DRIVER_VERSION": f'"{chosen.driver}"',
        "CUDA_VERSION": str(chosen.cuda),
        **{name: str(value) for name, value in chosen.macros.items()},
    }
    library = SharedLibrary(
        LIBRARY,
        tuple(sorted(SOURCES.glob("*.c"))),
        flags=tuple(f"-D{name}={value}" for name, value in macros.items()),
    )
    return compiled(f"nvml-{chosen.name}", (library,), cache) / LIBRARY


def environment(
    state: Path, variant: str = CURRENT, *, cache: Path | None = None
) -> dict[str, str]:
    """Return the variables to start a client with; both are read when it starts, not later."""
    return {
        SIMULATOR_STATE: str(state.absolute()),
        LIBRARY_VARIABLE: str(library_path(variant, cache=cache).parent),
    }
