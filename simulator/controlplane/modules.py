"""Modules that are built in their own folder: pinned here, fetched by Go, compared with the pin."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.controlplane.errors import BuildError
from simulator.controlplane.recipe import BUILD_ENVIRONMENT, SOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ModulePin:
    """A module, its version, and the checksum that Go has to find: a line of a `go.sum`."""

    module: str
    version: str
    sum: str


def read_pin_line(line: str, file: Path) -> ModulePin:
    words = line.split()
    if len(words) != len(("module", "version", "sum")):
        raise BuildError(f"{file} has {line!r}; a line is a module, its version and its checksum")
    return ModulePin(*words)


def fetched(go: Path, pin: ModulePin, environment: Mapping[str, str], file: Path) -> Path:
    """
    Have Go fetch the module into its own cache, and compare what it got with the pin in the file.
    """
    done = subprocess.run(
        [str(go), "mod", "download", "-json", f"{pin.module}@{pin.version}"],
        cwd=SOURCES,
        # The pin is what counts, and not every mirror passes on what the checksum database says.
        env={**environment, **BUILD_ENVIRONMENT, "GOSUMDB": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if done.returncode or "Dir" not in answer:
        why = answer.get("Error") or done.stderr.strip()[-1000:]
        raise BuildError(f"Go could not fetch {pin.module} {pin.version}: {why}")
    if answer.get("Sum") != pin.sum:
        raise BuildError(
            f"{pin.module} {pin.version} has the checksum {answer.get('Sum')}, not {pin.sum} as in"
            f" {file.name}; somebody changed one of the two"
        )
    return Path(answer["Dir"])
