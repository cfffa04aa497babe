"""
Libraries whose functions do nothing, for those of NVIDIA's that a framework links but does not call
to allocate memory.

Which functions there are is read from the framework's own imports.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from simulator.compiled import SharedLibrary, compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_STEM = re.compile(r"lib(\w+)\.so\.\d+")
_VERSIONED = re.compile(r"(?P<name>\w+)@{1,2}(?P<version>\S+)")


def stand_ins(names: Iterable[str], packages: Path, cache: Path) -> Path:
    """Return the folder with a library of each name, made for what is installed in `packages`."""
    wanted = sorted(set(_imports(packages)))
    sources = cache / "frameworks" / ".stand-ins" / packages.parents[2].name
    sources.mkdir(parents=True, exist_ok=True)
    libraries = tuple(_library(name, wanted, sources) for name in names)
    return compiled("stand-ins", libraries, cache)


def _imports(packages: Path) -> Iterator[str]:
    """Yield the symbols that the framework's libraries lack, NVIDIA's own libraries left out."""
    for path in sorted(packages.rglob("*.so*")):
        if path.is_file() and "nvidia" not in path.relative_to(packages).parts:
            done = subprocess.run(
                ["nm", "-D", "--undefined-only", str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            yield from (line.split()[-1] for line in done.stdout.splitlines() if line.strip())


def _library(name: str, imports: Iterable[str], folder: Path) -> SharedLibrary:
    stem = _STEM.fullmatch(name)
    prefix = stem[1] if stem else name
    plain, versioned = set(), False
    for symbol in imports:
        match = _VERSIONED.fullmatch(symbol)
        if match is not None and match["version"] == name:
            plain.add(match["name"])
            versioned = True
        elif match is None and re.match(rf"{prefix}[A-Z]", symbol):
            plain.add(symbol)
    source = folder / f"{prefix}.c"
    functions = "".join(f"int {one}(void) {{ return 0; }}\n" for one in sorted(plain))
    source.write_text(f"{functions}int gpufence_stand_in_{prefix}(void) {{ return 0; }}\n")
    version = f"{name} {{ global: *; }};" if versioned else ""
    return SharedLibrary(name, (source,), flags=("-fvisibility=default",), versions=version)
