"""
Find the control plane's programs, and build the ones that are missing: `python -m simulator build`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from simulator.controlplane.errors import BuildError, ControlPlaneError
from simulator.controlplane.folders import exclusive
from simulator.controlplane.golang import USUAL_PLACES, find_go, remedy, wheel_go
from simulator.controlplane.recipe import (
    BUILD_ENVIRONMENT,
    COMPONENTS,
    Component,
    GoModule,
    Recipe,
    component,
    read_recipe,
)
from simulator.progress import Progress

# The kubelet serves the one-node cluster only, which needs root; it is built when asked for.
USUAL = tuple(one.name for one in COMPONENTS if one.name != "kubelet")
# Not Kubernetes' own: built from modules of their own, or packages of Debian.
OTHERS = (
    *("keda", "helm", "cosign", "nvidia-cdi-hook"),
    *("chromium", "prometheus", "docker-registry", "skopeo"),
)
_EVERY = "all"
_TAIL_LINES = 15
# Settings of the person at the keyboard that would build something else than the recipe says.
_UNWANTED = ("GOARCH", "GOEXPERIMENT", "GOOS", "GOROOT", "GOTOOLDIR")


@dataclass(frozen=True)
class Assets:
    """
    Programs by name: from the folder KUBEBUILDER_ASSETS if it has them, else from the cache.

    The variable is the convention of Kubernetes test suites; what its folder lacks is built.
    """

    recipe: Recipe
    cache: Path
    given: Path | None
    environment: Mapping[str, str]
    go_places: tuple[str, ...] = USUAL_PLACES

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read where programs are and may be put; the mapping is kept for the compiler."""
        given = environment.get("KUBEBUILDER_ASSETS")
        if given and not Path(given).is_dir():
            raise BuildError(
                f"KUBEBUILDER_ASSETS is {given!r}, which is not a folder; correct it or unset it"
            )
        return cls(
            recipe=read_recipe(),
            cache=cache_folder(environment),
            given=Path(given).absolute() if given else None,
            environment=environment,
        )

    @property
    def built(self) -> Path:
        return self.recipe.cache_folder(self.cache)

    def find(self, name: str) -> Path | None:
        component(name)
        for folder in filter(None, (self.given, self.built)):
            if (folder / name).is_file():
                return folder / name
        return None

    def ensure(self, names: Iterable[str], progress: Progress) -> dict[str, Path]:
        """
        Return where each program is, building first what is missing.

        Of several callers at the same time one builds; the others wait and find the result.
        """
        wanted = list(names)
        if any(self.find(name) is None for name in wanted):
            self.built.mkdir(parents=True, exist_ok=True)
            with exclusive(self.built / ".lock", progress):
                missing = [one for one in COMPONENTS if one.name in wanted]
                self._build([one for one in missing if not self.find(one.name)], progress)
        return {name: self._path(name) for name in wanted}

    def _build(self, missing: list[Component], progress: Progress) -> None:
        if not missing:
            return
        go = self.go(progress)
        progress.say(
            f"building Kubernetes {self.recipe.kubernetes} with {go} into {self.built}, once:"
            f" {', '.join(one.name for one in missing)}"
        )
        for number, one in enumerate(missing, start=1):
            with progress.step(f"building {one.name} ({number}/{len(missing)})"):
                compile_component(go, self.recipe.module, one, self.built, self.environment)

    def go(self, progress: Progress) -> Path:
        """Return the Go to build with, fetching one where the machine has none that will do."""
        search = find_go(self.environment, self.recipe.go, self.go_places)
        if search.go is not None:
            return search.go
        for reason in search.refused:
            progress.say(f"not building with {reason}")
        try:
            return wheel_go(self.recipe, self.cache, self.environment, progress)
        except BuildError as error:
            raise BuildError(f"{remedy(self.recipe, search)}. Moreover, {error}") from error

    def _path(self, name: str) -> Path:
        path = self.find(name)
        if path is None:
            raise BuildError(f"{name} was built and has disappeared from {self.built}; try again")
        return path


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Name our part of the user's cache folder as the XDG base directory specification has it."""
    named = environment.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named) / "gpufence"
    home = environment.get("HOME")
    if not home:
        raise BuildError("neither XDG_CACHE_HOME nor HOME says where a cache may be; set one")
    return Path(home) / ".cache" / "gpufence"


def compile_component(
    go: Path, module: GoModule, component: Component, folder: Path, environment: Mapping[str, str]
) -> Path:
    """Build into a name nobody looks for, then rename."""
    target = folder / component.name
    partial = folder / f".{component.name}.partial"
    options = ["-ldflags", module.linker_flags, "-o", str(partial)]
    if module.module_file is not None:
        options.append(f"-modfile={module.module_file}")
    command = [str(go), "build", *options, component.package]
    variables = {name: value for name, value in environment.items() if name not in _UNWANTED}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            status = subprocess.run(
                command,
                cwd=module.folder,
                env=variables | BUILD_ENVIRONMENT | {"CGO_ENABLED": str(int(module.cgo))},
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
            if status == 0:
                partial.replace(target)
                return target
        finally:
            partial.unlink(missing_ok=True)
        output.seek(0)
        tail = "".join(output.readlines()[-_TAIL_LINES:])
    raise BuildError(
        f"building {component.name} with {go} failed with status {status}; the first build needs"
        f" network access for Go modules and about 5 GiB of disk. Go said:\n{tail}"
    )


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(
        prog="python -m simulator build",
        description="Build programs of the Kubernetes control plane from pinned sources, unless"
        " KUBEBUILDER_ASSETS or the cache folder has them. The first time takes about ten minutes"
        " on two cores and 5 GiB of disk; after that it takes no time.",
    )
    command.add_argument(
        "components",
        metavar="component",
        nargs="*",
        type=_known,
        help=f"{', '.join(one.name for one in COMPONENTS)}, or {' or '.join(OTHERS)} for what they"
        " say; if none is named, all of Kubernetes but kubelet",
    )
    command.add_argument(
        "--kubernetes",
        metavar="MINOR",
        action="append",
        default=[],
        help="build instead the API server of an older Kubernetes, 1.30 or later, and print its"
        f" folder, for KUBEBUILDER_ASSETS; {_EVERY} for each of them, which takes about an hour",
    )
    return command


def _others(assets: Assets, names: Sequence[str], progress: Progress) -> list[Path]:
    from simulator import debian, keda, published  # noqa: PLC0415 (they are built on this module)

    paths: list[Path] = []
    if "keda" in names:
        made = keda.ensure(assets, progress)
        paths += [made.operator, made.adapter, made.resources]
    programs = (published.HELM, published.COSIGN, published.CDI_HOOK)
    paths += [one.ensure(assets, progress) for one in programs if one.name in names]
    for packaged in debian.PACKAGES:
        if packaged.package in names:
            paths += debian.ensure(packaged, assets.environment, progress).values()
    return paths


def _older(assets: Assets, minors: Sequence[str], progress: Progress) -> list[Path]:
    from simulator.controlplane import older  # noqa: PLC0415 (it is built on this module)

    wanted = list(older.read_releases()) if _EVERY in minors else minors
    return [older.ensure(assets, minor, progress) for minor in wanted]


def _known(name: str) -> str:
    try:
        return name if name in OTHERS else component(name).name
    except BuildError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    names = arguments.components or ([] if arguments.kubernetes else USUAL)
    try:
        assets, progress = Assets.from_environment(os.environ), Progress(sys.stderr)
        paths = list(assets.ensure([one for one in names if one not in OTHERS], progress).values())
        paths += _others(assets, names, progress)
        paths += _older(assets, arguments.kubernetes, progress)
    except ControlPlaneError as error:
        print(f"python -m simulator build: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; what was built so far stays", file=sys.stderr)
        return 130
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
