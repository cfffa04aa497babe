"""
Build the environments of frameworks in the user's cache, one after the other, and remove them.

Each is several GiB. What is complete carries a mark with its requirements and is not built again;
what was interrupted is taken up where pip stopped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from simulator.compiled import default_cache
from simulator.controlplane.folders import exclusive
from simulator.wheels.catalog import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simulator.progress import Progress
    from simulator.wheels.catalog import WheelSet

SPARE_MIB = 4096
"""What has to be left on the disk: pip unpacks beside the target, and others live there, too."""

_MARK = ".built"
_SHOWN_CHARACTERS = 1500
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off")
# Compiling what is never imported takes longer than unpacking it, and a cache doubles its size.
LEAN = ("--no-compile", "--no-cache-dir", "--quiet")


class WheelsError(GpufenceError):
    """Raised when an environment cannot be built, or is asked for before it was."""


def folder_of(wheels: WheelSet, cache: Path | None = None) -> Path:
    return (cache or default_cache()) / "frameworks" / wheels.name


def is_built(wheels: WheelSet, cache: Path | None = None) -> bool:
    mark = folder_of(wheels, cache) / _MARK
    return mark.is_file() and mark.read_text(encoding="utf-8") == _marked(wheels)


def python_of(wheels: WheelSet, cache: Path | None = None) -> Path:
    """Return the interpreter of an environment that is there."""
    if not is_built(wheels, cache):
        raise WheelsError(
            f"{wheels.name} is not built; build it with: make frameworks ONLY={wheels.name}"
            f" ({wheels.size_mib} MiB)"
        )
    return folder_of(wheels, cache) / "bin" / "python"


def packages_of(wheels: WheelSet, cache: Path | None = None) -> Path:
    """Return the folder of an environment into which pip installs."""
    (packages,) = folder_of(wheels, cache).glob("lib/python3*/site-packages")
    return packages


def build(wanted: Iterable[WheelSet], progress: Progress, cache: Path | None = None) -> None:
    """Build what is missing; says before it begins how much there is to come."""
    root = cache or default_cache()
    missing = [one for one in wanted if not is_built(one, root)]
    if not missing:
        return
    (root / "frameworks").mkdir(parents=True, exist_ok=True)
    size = sum(one.size_mib for one in missing)
    names = ", ".join(one.name for one in missing)
    progress.say(f"to be fetched and installed in {root / 'frameworks'}: {names}; {size} MiB")
    with exclusive(root / "frameworks" / ".lock", progress):
        for one in missing:
            with progress.step(f"installing {one.name}, {one.size_mib} MiB"):
                _build(one, root)


def remove(wanted: Iterable[WheelSet], progress: Progress, cache: Path | None = None) -> None:
    """Remove environments, and nothing else."""
    root = cache or default_cache()
    (root / "frameworks").mkdir(parents=True, exist_ok=True)
    with exclusive(root / "frameworks" / ".lock", progress):
        for one in wanted:
            folder = folder_of(one, root)
            if folder.is_dir():
                with progress.step(f"removing {folder}"):
                    (folder / _MARK).unlink(missing_ok=True)
                    shutil.rmtree(folder)


def _marked(wheels: WheelSet) -> str:
    return "".join(f"{one}\n" for one in wheels.requirements)


def _build(wheels: WheelSet, cache: Path) -> None:
    folder = folder_of(wheels, cache)
    free = shutil.disk_usage(folder.parent).free >> 20
    if free < wheels.size_mib + SPARE_MIB:
        raise WheelsError(
            f"{wheels.name} needs {wheels.size_mib} MiB and {SPARE_MIB} to spare, {folder.parent}"
            f" has {free}; make room, set XDG_CACHE_HOME elsewhere, or choose fewer with ONLY=..."
        )
    python = folder / "bin" / "python"
    if not python.exists():
        _run([_interpreter(), "-m", "venv", str(folder)], wheels)
    _run([str(python), *PIP, *LEAN, *wheels.requirements], wheels)
    (folder / _MARK).write_text(_marked(wheels), encoding="utf-8")


def _interpreter() -> str:
    if sys.version_info[:2] == tuple(map(int, PYTHON.split("."))):
        return sys.executable
    found = shutil.which(f"python{PYTHON}")
    if found is None:
        raise WheelsError(
            f"the frameworks are installed with Python {PYTHON}, which is not on PATH; add it"
        )
    return found


def _run(command: list[str], wheels: WheelSet) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-_SHOWN_CHARACTERS:]
        raise WheelsError(f"{wheels.name} could not be installed: {said}")
