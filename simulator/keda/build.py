"""
KEDA's programs from its published Go module: `python -m simulator build keda`.

Unlike Kubernetes' programs they are built inside the module's own folder: KEDA's `go.mod` replaces
modules, which counts for the main module only, and its `go.sum` pins what it is made of. The module
itself is pinned here, in `go/keda.sum`.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.controlplane.build import compile_component
from simulator.controlplane.folders import exclusive
from simulator.controlplane.modules import ModulePin, fetched, read_pin_line
from simulator.controlplane.recipe import (
    BUILD_ENVIRONMENT,
    SOURCES,
    Component,
    GoModule,
    platform_name,
)

if TYPE_CHECKING:
    from pathlib import Path

    from simulator.controlplane.build import Assets
    from simulator.progress import Progress

PIN = SOURCES / "keda.sum"
OPERATOR = Component("keda-operator", "./cmd/operator")
ADAPTER = Component("keda-adapter", "./cmd/adapter")
_RESOURCES = "crds"


@dataclass(frozen=True, slots=True)
class KedaPrograms:
    """Where the programs are, and the folder with the definitions of KEDA's resources."""

    operator: Path
    adapter: Path
    resources: Path


def read_pin(path: Path = PIN) -> ModulePin:
    return read_pin_line(path.read_text(encoding="utf-8").strip(), path)


def folder_of(pin: ModulePin, cache: Path) -> Path:
    content = f"{pin.sum}{sorted(BUILD_ENVIRONMENT.items())}".encode()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return cache / f"keda-{pin.version}-{platform_name()}" / digest


def ensure(assets: Assets, progress: Progress) -> KedaPrograms:
    """Return where everything is, building first what is missing."""
    pin = read_pin()
    folder = folder_of(pin, assets.cache)
    made = KedaPrograms(folder / OPERATOR.name, folder / ADAPTER.name, folder / _RESOURCES)
    if _is_whole(made):
        return made
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder / ".lock", progress):
        if not _is_whole(made):
            _build(assets, pin, made, progress)
    return made


def _is_whole(made: KedaPrograms) -> bool:
    return made.operator.is_file() and made.adapter.is_file() and made.resources.is_dir()


def _build(assets: Assets, pin: ModulePin, made: KedaPrograms, progress: Progress) -> None:
    go = assets.go(progress)
    with progress.step(f"fetching {pin.module} {pin.version}"):
        sources = fetched(go, pin, assets.environment, PIN)
    shutil.rmtree(made.resources, ignore_errors=True)
    partial = made.resources.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(sources / "config" / "crd" / "bases", partial)
    for path in (partial, *partial.iterdir()):
        path.chmod(path.stat().st_mode | 0o200)  # Go's own copy is read-only
    module = GoModule(sources, f"-s -w -X {pin.module}/version.Version={pin.version[1:]}")
    progress.say(f"building KEDA {pin.version} into {made.operator.parent}, once: ten minutes")
    for number, one in enumerate((OPERATOR, ADAPTER), start=1):
        with progress.step(f"building {one.name} ({number}/2)"):
            compile_component(go, module, one, made.operator.parent, assets.environment)
    partial.rename(made.resources)
