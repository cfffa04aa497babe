"""
Archives of images in the user's cache, each named by everything that decides what is in it.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from simulator.cluster.images import base
from simulator.cluster.images.builder import Builder
from simulator.controlplane.build.assets import cache_folder
from simulator.controlplane.build.lock import exclusive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.progress import Progress

SOURCES = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
PAUSE, WORKLOAD = "pause", "workload"
PRODUCT = ("webhook", "agent", "certs")
# What an image keeps of the packages, besides its program; see deploy/images/install.
SHARED = ("gpufence", "kube")
# What else decides about an image.
OTHERS = ("deploy/images", "requirements", "pyproject.toml", "README.md", "LICENSE")
_KEPT = 2


@dataclass(frozen=True)
class Images:
    """
    Makes what is missing of the images, and keeps them in a folder of the cache.
    """

    folder: Path
    environment: Mapping[str, str]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        return cls(cache_folder(environment) / "images", environment)

    def ensure(self, progress: Progress) -> list[Path]:
        """
        Return the archives of all images, as the sources are now.
        """
        wanted = {
            PAUSE: self._archive(PAUSE, "simulator/cluster/images/pause"),
            WORKLOAD: self._archive(WORKLOAD, "gpufence", "simulator"),
            **{program: self._archive(program, *SHARED, program, *OTHERS) for program in PRODUCT},
        }
        if not all(path.exists() for path in wanted.values()):
            self.folder.mkdir(parents=True, exist_ok=True)
            with exclusive(self.folder / ".lock", progress):
                self._make(wanted, progress)
        return list(wanted.values())

    def forget(self) -> None:
        """
        Remove archives, base and all, so that the next cluster makes them anew.
        """
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self, wanted: Mapping[str, Path], progress: Progress) -> None:
        builder = Builder(self.folder / "store", self.environment)
        builder.prepare()
        on = base.ensure(builder, self.folder, progress)
        missing = [name for name, path in wanted.items() if not path.exists()]
        for number, name in enumerate(missing, start=1):
            with (
                progress.step(f"building image {name} ({number}/{len(missing)})"),
                tempfile.TemporaryDirectory(prefix=f"{name}-", dir=self.folder) as aside,
            ):
                made = _build(builder, name, on, Path(aside))
                made.replace(wanted[name])
            self._thin_out(name)
        builder.run("buildah", "rmi", "--prune")

    def _archive(self, name: str, *sources: str) -> Path:
        digest = hashlib.sha256(base.name().encode())
        for source in sources:
            for path in _files(SOURCES / source):
                content = path.read_bytes()
                digest.update(f"{path.relative_to(SOURCES)} {len(content)}\n".encode() + content)
        return self.folder / f"{name}-{digest.hexdigest()[:16]}.tar"

    def _thin_out(self, name: str) -> None:
        archives = sorted(self.folder.glob(f"{name}-*.tar"), key=lambda path: path.stat().st_mtime)
        for path in archives[:-_KEPT]:
            path.unlink()


def _build(builder: Builder, name: str, on: str, aside: Path) -> Path:
    """
    Build one image and return its archive, which is in the folder `aside`.
    """
    if name in PRODUCT:
        builder.run(
            *("sh", "deploy/images/build", "--engine", "buildah", "--base", on),
            *("--save", str(aside), name),
            cwd=SOURCES,
        )
        return aside / f"{name}.tar"
    image, context = f"localhost/gpufence-{name}:1", SOURCES
    dockerfile = HERE / name / "Dockerfile"
    if name == PAUSE:
        context = aside
        source = HERE / name / "pause.c"
        builder.run("cc", "-static", "-Os", "-s", "-o", str(aside / "pause"), str(source))
    builder.run(
        *("buildah", "build", "--format=docker", "--build-arg", f"BASE={on}", "--tag", image),
        *("--file", str(dockerfile), str(context)),
    )
    builder.save(image, image, aside / f"{name}.tar")
    return aside / f"{name}.tar"


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(
        found for found in path.rglob("*") if found.is_file() and "__pycache__" not in found.parts
    )
