"""
Helm from its published Go module: `python -m simulator build helm`.

It is built inside the module's own folder, whose `go.sum` pins what it is made of. The module
itself is pinned in the control plane's `go/helm.sum`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

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

PIN: Final = SOURCES / "helm.sum"
_HELM: Final = Component("helm", "./cmd/helm")


def read_pin(path: Path = PIN) -> ModulePin:
    return read_pin_line(path.read_text(encoding="utf-8").strip(), path)


def folder_of(pin: ModulePin, cache: Path) -> Path:
    content = f"{pin.sum}{_flags(pin)}{sorted(BUILD_ENVIRONMENT.items())}".encode()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return cache / f"helm-{pin.version}-{platform_name()}" / digest


def ensure(assets: Assets, progress: Progress) -> Path:
    """
    Return where the program is, building it first where it is missing.
    """
    pin = read_pin()
    helm = folder_of(pin, assets.cache) / _HELM.name
    if not helm.is_file():
        helm.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(helm.parent / ".lock", progress):
            if not helm.is_file():
                _build(assets, pin, helm, progress)
    return helm


def _flags(pin: ModulePin) -> str:
    return f"-s -w -X {pin.module}/internal/version.version={pin.version}"


def _build(assets: Assets, pin: ModulePin, helm: Path, progress: Progress) -> None:
    go = assets.go(progress)
    with progress.step(f"fetching {pin.module} {pin.version}"):
        sources = fetched(go, pin, assets.environment, PIN)
    with progress.step(f"building helm {pin.version} into {helm.parent}, once"):
        module = GoModule(sources, _flags(pin))
        compile_component(go, module, _HELM, helm.parent, assets.environment)
