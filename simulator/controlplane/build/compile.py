"""
Compile one program so that it either exists whole or not at all.
"""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from simulator.controlplane.build.recipe import BUILD_ENVIRONMENT, Component, Recipe
from simulator.controlplane.errors import BuildError

_TAIL_LINES = 15
# Settings of the person at the keyboard that would build something else than the recipe says.
_UNWANTED = ("GOARCH", "GOEXPERIMENT", "GOOS", "GOROOT", "GOTOOLDIR")


def compile_component(
    go: Path, recipe: Recipe, component: Component, folder: Path, environment: Mapping[str, str]
) -> Path:
    """
    Build into a name nobody looks for, then rename.
    """
    target = folder / component.name
    partial = folder / f".{component.name}.partial"
    options = ["-ldflags", recipe.linker_flags, "-o", str(partial)]
    command = [str(go), "build", *options, component.package]
    variables = {name: value for name, value in environment.items() if name not in _UNWANTED}
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        try:
            status = subprocess.run(
                command,
                cwd=recipe.sources,
                env=variables | BUILD_ENVIRONMENT,
                stdout=said,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
            if status == 0:
                partial.replace(target)
                return target
        finally:
            partial.unlink(missing_ok=True)
        said.seek(0)
        tail = "".join(said.readlines()[-_TAIL_LINES:])
    raise BuildError(
        f"building {component.name} with {go} failed with status {status}; the first build needs"
        f" network access for Go modules and about 5 GiB of disk. Go said:\n{tail}"
    )
