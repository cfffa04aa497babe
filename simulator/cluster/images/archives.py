"""Archives of images in the user's cache, each named by everything that decides what is in it."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from simulator.cluster.images.builder import (
    ASIDE,
    Buildah,
    ImageBuilder,
    base_name,
    ensure_base,
)
from simulator.cluster.setup import ImageError
from simulator.controlplane.build import cache_folder
from simulator.controlplane.folders import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simulator.progress import Progress

SOURCES = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
PAUSE, WORKLOAD = "pause", "workload"
PRODUCT = ("webhook", "agent", "certs", "controller")
# What an image keeps of the packages, besides its program; see deploy/images/install.
SHARED = ("gpufence", "kube", "service")
PLUGIN_IN, PLUGIN = "certs", "kubectl_gpufence"
# What else decides about an image.
OTHERS = ("deploy/images", "requirements", "pyproject.toml", "README.md", "LICENSE")
LOCK = ".lock"
STORE = "store"
_KEPT = 2


@dataclass(frozen=True)
class ImageArchives:
    """Makes what is missing of the images, and keeps them in a folder of the cache."""

    folder: Path
    builder: ImageBuilder
    sources: Path = SOURCES

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        folder = cache_folder(environment) / "images"
        return cls(folder, Buildah(folder / STORE, environment))

    def ensure(self, progress: Progress) -> list[Path]:
        """Return the archives of all images, as the sources are now."""
        wanted = {
            PAUSE: self._archive(PAUSE, "simulator/cluster/images/pause"),
            WORKLOAD: self._archive(WORKLOAD, "gpufence", "simulator"),
            **{program: self._archive(program, *_sources(program)) for program in PRODUCT},
        }
        if not all(path.exists() for path in wanted.values()):
            with self._alone(progress):
                self._make(wanted, progress)
        for path in wanted.values():
            path.touch()  # the least lately used go first
        return list(wanted.values())

    def build(self, progress: Progress, *arguments: str) -> None:
        """Run the sources' own `deploy/images/build`, on our base and in our store."""
        with self._alone(progress):
            self.builder.prepare()
            on = ensure_base(self.builder, self.folder, progress)
            with progress.step(f"building images of {self.sources}"):
                self._script(on, *arguments)
            self.builder.run("buildah", "rmi", "--prune")

    def forget(self, progress: Progress) -> None:
        """Remove archives, base and all, so that the next cluster makes them anew."""
        with self._alone(progress):
            for path in self.folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name != LOCK:
                    path.unlink()

    @contextmanager
    def _alone(self, progress: Progress) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder / LOCK, progress):
            yield

    def _make(self, wanted: Mapping[str, Path], progress: Progress) -> None:
        for path in self.folder.glob(f"{ASIDE}*"):
            shutil.rmtree(path)  # of a build that was killed
        self.builder.prepare()
        on = ensure_base(self.builder, self.folder, progress)
        missing = [name for name, path in wanted.items() if not path.exists()]
        for number, name in enumerate(missing, start=1):
            with (
                progress.step(f"building image {name} ({number}/{len(missing)})"),
                tempfile.TemporaryDirectory(prefix=ASIDE, dir=self.folder) as aside,
            ):
                self._build(name, on, Path(aside)).replace(wanted[name])
            self._thin_out(name)
        self.builder.run("buildah", "rmi", "--prune")

    def _build(self, name: str, on: str, aside: Path) -> Path:
        archive = aside / f"{name}.tar"
        if name in PRODUCT:
            self._script(on, "--save", str(aside), name)
            return archive
        image, context, here = f"localhost/gpufence-{name}:1", self.sources, HERE / name
        if name == PAUSE:
            context = aside
            program, source = str(aside / "pause"), str(here / "pause.c")
            self.builder.run("cc", "-static", "-Os", "-s", "-o", program, source)
        self.builder.run(
            *("buildah", "build", "--format=docker", "--build-arg", f"BASE={on}"),
            *("--tag", image, "--file", str(here / "Dockerfile"), str(context)),
        )
        tagged = f"docker-archive:{archive}:{image}"
        self.builder.run("buildah", "push", "--quiet", image, tagged)
        return archive

    def _script(self, on: str, *arguments: str) -> None:
        script = ("sh", "deploy/images/build", "--engine", "buildah", "--base", on)
        self.builder.run(*script, *arguments, cwd=self.sources)

    def _archive(self, name: str, *sources: str) -> Path:
        digest = hashlib.sha256(base_name().encode())
        for source in sources:
            for path in _files(self.sources / source):
                content = path.read_bytes()
                digest.update(
                    f"{path.relative_to(self.sources)} {len(content)}\n".encode() + content
                )
        return self.folder / f"{name}-{digest.hexdigest()[:16]}.tar"

    def _thin_out(self, name: str) -> None:
        archives = sorted(self.folder.glob(f"{name}-*.tar"), key=lambda path: path.stat().st_mtime)
        for path in archives[:-_KEPT]:
            path.unlink()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ImageError(f"no {path}; images are built from a checkout of gpufence's sources")
    return sorted(
        file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    )


def _sources(program: str) -> tuple[str, ...]:
    plugin = (PLUGIN,) if program == PLUGIN_IN else ()
    return (*SHARED, program, *plugin, *OTHERS)
