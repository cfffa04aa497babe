"""
API servers of older Kubernetes: `python -m simulator build --kubernetes 1.30`.

Built of each are kube-apiserver and its scheduler, which must not be younger; etcd, kubectl and
kube-controller-manager of the newest serve all of them. They are built inside Kubernetes' own
module, whose `go.sum` pins what they are made of but for the staging folder, which is not published
with it. `go/versions.sum` pins Kubernetes itself and the releases of the staging modules; what is
not in it is left out. `pins.py` writes it.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simulator.controlplane.build import compile_component
from simulator.controlplane.errors import BuildError
from simulator.controlplane.folders import exclusive
from simulator.controlplane.modules import ModulePin, fetched, read_pin_line
from simulator.controlplane.recipe import (
    BUILD_ENVIRONMENT,
    SOURCES,
    Component,
    GoModule,
    linker_flags,
    platform_name,
)

if TYPE_CHECKING:
    from simulator.controlplane.build import Assets
    from simulator.progress import Progress

PINS: Final = SOURCES / "versions.sum"
_KUBERNETES: Final = "k8s.io/kubernetes"
_PROGRAMS: Final = tuple(
    Component(name, f"./cmd/{name}") for name in ("kube-apiserver", "kube-scheduler")
)
_STAGING: Final = re.compile(r"^\s*(k8s\.io/[a-z-]+) (?:v0\.0\.0$|=> \./staging/)")


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kubernetes, and the lines that its `go.sum` lacks."""

    pin: ModulePin
    staging: tuple[str, ...]

    @property
    def minor(self) -> str:
        return ".".join(self.pin.version.removeprefix("v").split(".")[:2])

    @property
    def _digest(self) -> str:
        content = [self.pin.sum, *self.staging, repr(sorted(BUILD_ENVIRONMENT.items()))]
        return hashlib.sha256("\n".join(content).encode()).hexdigest()[:12]

    def folder(self, cache: Path) -> Path:
        return cache / f"kubernetes-{self.pin.version}-{platform_name()}" / self._digest

    def go_mod(self, own: str) -> str:
        """Return the module's own `go.mod` with releases instead of its staging folder."""
        released = "v0." + self.pin.version.removeprefix("v1.")
        pinned = {line.split()[0] for line in self.staging}
        lines = []
        for line in own.splitlines(keepends=True):
            staging = _STAGING.match(line)
            if staging is None:
                lines.append(line)
            elif (name := staging.group(1)) in pinned:
                replaces = f"{name} => " if "=>" in line else ""
                lines.append(f"\t{replaces}{name} {released}\n")
        return "".join(lines)


def read_releases(path: Path = PINS) -> dict[str, Release]:
    """Return the releases by their minor, the oldest first."""
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(f"{_KUBERNETES} ")]
    releases = [
        Release(read_pin_line(lines[start], path), tuple(lines[start + 1 : end]))
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]
    return {one.minor: one for one in releases}


def ensure(assets: Assets, minor: str, progress: Progress) -> Path:
    """Return the folder with the programs of that minor, building first what is missing."""
    releases = read_releases()
    if minor not in releases:
        raise BuildError(f"no Kubernetes {minor}; there are {', '.join(releases)}")
    release = releases[minor]
    folder = release.folder(assets.cache)
    if _missing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(folder / ".lock", progress):
            if missing := _missing(folder):
                _build(assets, release, folder, missing, progress)
    return folder


def _missing(folder: Path) -> list[Component]:
    return [one for one in _PROGRAMS if not (folder / one.name).is_file()]


def _build(
    assets: Assets, release: Release, folder: Path, missing: list[Component], progress: Progress
) -> None:
    go = assets.go(progress)
    version = release.pin.version
    with progress.step(f"fetching Kubernetes {version}"):
        sources = fetched(go, release.pin, assets.environment, PINS)
    progress.say(f"building programs of Kubernetes {version} with {go} into {folder}, once")
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as temporary:
        module_file = Path(temporary) / "go.mod"
        module_file.write_text(release.go_mod((sources / "go.mod").read_text()))
        sums = (sources / "go.sum").read_text() + "".join(f"{one}\n" for one in release.staging)
        module_file.with_name("go.sum").write_text(sums)
        # Little of one version can be used for another: what Go keeps of it, 2 GiB, goes as well.
        environment = {**assets.environment, "GOCACHE": str(Path(temporary) / "cache")}
        module = GoModule(sources, linker_flags(version), module_file)
        for number, one in enumerate(missing, start=1):
            with progress.step(f"building {one.name} {version} ({number}/{len(missing)})"):
                compile_component(go, module, one, folder, environment)
