"""
The base of all images: Debian with Python, made here from Debian's packages.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.cluster.images.builder import Builder
    from simulator.progress import Progress

ASIDE = ".aside-"
"""How folders begin in which something is being made."""
SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python3-minimal", "python3-venv")
# A third of what the packages would bring, and read by nobody in a container.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
DOCKERFILE = "FROM scratch\nADD base.tar /\n"


def name() -> str:
    """
    Name the image by what decides it.
    """
    recipe = repr((SUITE, PACKAGES, LEFT_OUT, DOCKERFILE))
    return f"localhost/gpufence-base:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def ensure(builder: Builder, folder: Path, progress: Progress) -> str:
    """
    Return the name of the base, making it first if the store has none.
    """
    image = name()
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
