"""
Compile the library once per variant, keep it in the user's cache, and say how a client finds it.

A variant is the same library as an older, or odder, driver ships it: fewer symbols, other widths.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from gpufence.errors import InvalidError, Problem
from gpufence.names import SIMULATOR_STATE
from simulator.nvml.errors import LibraryError

LIBRARY = "libnvidia-ml.so.1"

LIBRARY_VARIABLE = "LD_LIBRARY_PATH"
SOURCES = Path(__file__).parent / "library"
FLAGS = (
    *("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"),
    *("-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion"),
    *(f"-Wl,-soname,{LIBRARY}", "-Wl,-z,defs"),
)
_SHOWN_LINES = 12


@dataclass(frozen=True)
class Variant:
    """
    One driver's library; `without` and `widths` are the macros of `library/library.h`.
    """

    name: str
    driver: str
    cuda: int
    about: str
    macros: dict[str, int] = field(default_factory=dict)


CURRENT = "current"
VARIANTS = (
    Variant(CURRENT, "580.95.05", 13000, "every symbol, version 3 lists of 24 bytes an entry"),
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
    """
    Return the compiled library, building it if no earlier build of these sources is there.

    Safe to call from several processes at once: each builds aside and moves the whole into place.
    """
    chosen = find_variant(variant)
    folder = (cache or _default_cache()) / f"nvml-{_digest(chosen)}"
    target = folder / LIBRARY
    if not target.exists():
        _build(chosen, folder)
    return target


def environment(
    state: Path, variant: str = CURRENT, *, cache: Path | None = None
) -> dict[str, str]:
    """
    Return the variables to start a client with; both are read when it starts, not later.
    """
    return {
        SIMULATOR_STATE: str(state.absolute()),
        LIBRARY_VARIABLE: str(library_path(variant, cache=cache).parent),
    }


def _default_cache() -> Path:
    try:
        return Path.home() / ".cache" / "gpufence"
    except RuntimeError as error:
        raise LibraryError("no home folder to keep the library in; set HOME") from error


def _arguments(variant: Variant) -> list[str]:
    macros = {
        "DRIVER_VERSION": f'"{variant.driver}"',
        "CUDA_VERSION": str(variant.cuda),
        **{name: str(value) for name, value in variant.macros.items()},
    }
    return [*FLAGS, *(f"-D{name}={value}" for name, value in macros.items())]


def _digest(variant: Variant) -> str:
    digest = hashlib.sha256(repr(_arguments(variant)).encode())
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return f"{variant.name}-{digest.hexdigest()[:16]}"


def _build(variant: Variant, folder: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LibraryError("no C compiler: neither cc, gcc nor clang; on Debian: apt install gcc")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".nvml-", dir=folder.parent))
    except OSError as error:
        raise LibraryError(f"{folder.parent}: {error.strerror}; set HOME elsewhere") from error
    try:
        sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
        command = [compiler, *_arguments(variant), "-o", str(aside / LIBRARY), *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = "\n".join(done.stderr.splitlines()[:_SHOWN_LINES])
            raise LibraryError(f"{compiler} could not compile {SOURCES}:\n{lines}")
        _install(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _install(aside: Path, folder: Path) -> None:
    aside.chmod(0o755)
    try:
        os.rename(aside, folder)  # noqa: PTH104 - Path.rename would say the same
    except OSError:
        if not (folder / LIBRARY).exists():
            raise
