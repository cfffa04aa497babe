"""
Programs that are built from their published Go modules: `python -m simulator build helm`.

Each is built inside its module's own folder, whose `go.sum` pins what it is made of. The module
itself is pinned in the control plane's `go/<program>.sum`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Published:
    """A program below `cmd/` of its module, and the variable in which it keeps its version."""

    name: str
    version_variable: str
    duration: str
    cgo: bool = False

    @property
    def pin_file(self) -> Path:
        return SOURCES / f"{self.name}.sum"

    def read_pin(self) -> ModulePin:
        return read_pin_line(self.pin_file.read_text(encoding="utf-8").strip(), self.pin_file)

    def linker_flags(self, pin: ModulePin) -> str:
        variable = self.version_variable.format(module=pin.module)
        flags = f"-s -w -X {variable}={pin.version}"
        # Lazily bound: what a library lacks is missed when it is called, as in NVIDIA's own build.
        return f"{flags} -extldflags=-Wl,-z,lazy" if self.cgo else flags

    def folder_of(self, pin: ModulePin, cache: Path) -> Path:
        content = f"{pin.sum}{self.linker_flags(pin)}{sorted(BUILD_ENVIRONMENT.items())}".encode()
        digest = hashlib.sha256(content).hexdigest()[:12]
        return cache / f"{self.name}-{pin.version}-{platform_name()}" / digest

    def find(self, assets: Assets) -> Path | None:
        """Return where the program is, if it is built."""
        program = self.folder_of(self.read_pin(), assets.cache) / self.name
        return program if program.is_file() else None

    def ensure(self, assets: Assets, progress: Progress) -> Path:
        """Return where the program is, building it first where it is missing."""
        pin = self.read_pin()
        program = self.folder_of(pin, assets.cache) / self.name
        if not program.is_file():
            program.parent.mkdir(parents=True, exist_ok=True)
            with exclusive(program.parent / ".lock", progress):
                if not program.is_file():
                    self._build(assets, pin, program, progress)
        return program

    def _build(self, assets: Assets, pin: ModulePin, program: Path, progress: Progress) -> None:
        go = assets.go(progress)
        with progress.step(f"fetching {pin.module} {pin.version}"):
            sources = fetched(go, pin, assets.environment, self.pin_file)
        what = f"building {self.name} {pin.version} into {program.parent}, once: {self.duration}"
        with progress.step(what):
            module = GoModule(sources, self.linker_flags(pin), cgo=self.cgo)
            component = Component(self.name, f"./cmd/{self.name}")
            compile_component(go, module, component, program.parent, assets.environment)


HELM: Final = Published("helm", "{module}/internal/version.version", "two minutes")
COSIGN: Final = Published("cosign", "sigs.k8s.io/release-utils/version.gitVersion", "ten minutes")
CDI_HOOK: Final = Published(
    "nvidia-cdi-hook", "{module}/internal/info.version", "one minute", cgo=True
)
