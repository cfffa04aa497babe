"""
Buildah, with a store of its own, so that it meets nobody else's images and leaves no traces; and
the base of all images, Debian with Python, made here from Debian's packages.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from simulator.cluster import needs
from simulator.cluster.setup import ImageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.progress import Progress

ASIDE = ".aside-"
"""How folders begin in which something is being made."""
SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python3-minimal", "python3-venv")
# A third of what the packages would bring, and read by nobody in a container.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
DOCKERFILE = "FROM scratch\nADD base.tar /\n"
_SHOWN_LINES = 15


class ImageBuilder(Protocol):
    """Makes images."""

    def prepare(self) -> None:
        """Get ready, whatever an interrupted build left."""
        ...

    def has(self, image: str) -> bool:
        """Return whether the store has an image of that name."""
        ...

    def run(self, *command: str, cwd: Path | None = None) -> None:
        """Run to the end; raise an ImageError with the last words should it fail."""
        ...


class Buildah:
    """Runs buildah and other programs; `folder` keeps the store from one time to the next."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._driver = ""

    def prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._driver = "overlay" if needs.overlay_works(self._folder) else "vfs"
        (self._folder / "storage.conf").write_text(
            f'[storage]\ndriver = "{self._driver}"\n'
            f'graphroot = "{self._folder}/{self._driver}"\nrunroot = "{self._folder}/run"\n'
        )
        # By default buildah makes a folder for networks in /etc.
        (self._folder / "containers.conf").write_text(
            f'[network]\nnetwork_config_dir = "{self._folder}/networks"\n'
        )
        self.run("buildah", "rm", "--all")

    def has(self, image: str) -> bool:
        return self._start("buildah", "inspect", "--type=image", image).returncode == 0

    def run(self, *command: str, cwd: Path | None = None) -> None:
        done = self._start(*command, cwd=cwd)
        if done.returncode != 0:
            words = "\n".join(done.stdout.splitlines()[-_SHOWN_LINES:])
            raise ImageError(f"{' '.join(command)} ended with {done.returncode}:\n{words}")

    @property
    def environment(self) -> dict[str, str]:
        """With what buildah finds this store."""
        return {
            **self._environment,
            "PATH": needs.search_path(),
            "BUILDAH_ISOLATION": "chroot",
            "STORAGE_DRIVER": self._driver,
            "CONTAINERS_STORAGE_CONF": str(self._folder / "storage.conf"),
            "CONTAINERS_CONF": str(self._folder / "containers.conf"),
        }

    def _start(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        # Mounts of a build that is killed end with their namespace.
        return subprocess.run(
            ["unshare", "--mount", "--fork", "--kill-child", *command],
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def base_name() -> str:
    """Name the image by what decides it."""
    recipe = repr((SUITE, PACKAGES, LEFT_OUT, DOCKERFILE))
    return f"localhost/gpufence-base:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def ensure_base(builder: ImageBuilder, folder: Path, progress: Progress) -> str:
    image = base_name()
    if builder.has(image):
        return image
    with (
        progress.step(f"making a base of Debian {SUITE} with Python, once"),
        tempfile.TemporaryDirectory(prefix=ASIDE, dir=folder) as context,
    ):
        tar = Path(context) / "base.tar"
        included = f"--include={','.join(PACKAGES)}"
        excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
        builder.run("mmdebstrap", "--variant=minbase", included, *excluded, SUITE, str(tar))
        (Path(context) / "Dockerfile").write_text(DOCKERFILE)
        builder.run("buildah", "build", "--tag", image, context)
    return image
