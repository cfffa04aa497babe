"""
Whole releases as somebody makes them: from clean clones, by `make release`, signed by a key of
cosign's.
"""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from simulator.cluster import needs
from simulator.cluster.images.builder import Buildah, ensure_base
from simulator.controlplane import Assets
from simulator.progress import Progress
from simulator.published import COSIGN
from tests.support.sources import ROOT

WEBSITE = "https://files.example/gpufence"
SOURCE = "git+https://git.example/gpufence"
PASSWORD = "open sesame"
_TOOLS = ("buildah", "mmdebstrap")


@dataclass(frozen=True)
class Verdict:
    """Whether a program took what it was shown, and its words."""

    taken: bool
    words: str


@dataclass(frozen=True)
class Cosign:
    """Sigstore's own program, in a folder with a pair of keys that it made."""

    program: Path
    folder: Path

    @property
    def key(self) -> Path:
        return self.folder / "cosign.key"

    @property
    def public(self) -> Path:
        return self.folder / "cosign.pub"

    def __call__(self, *arguments: str | Path, folder: Path | None = None) -> Verdict:
        done = subprocess.run(
            [self.program, *arguments],
            cwd=folder or self.folder,
            env={"HOME": str(self.folder), "COSIGN_PASSWORD": PASSWORD},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Verdict(done.returncode == 0, done.stdout)

    def verify(self, verb: str, folder: Path, *arguments: str) -> Verdict:
        common = (f"--key={self.public}", "--insecure-ignore-tlog=true")
        return self(verb, *common, *arguments, folder=folder)


def cosign_in(folder: Path) -> Cosign:
    program = COSIGN.ensure(Assets.from_environment(os.environ), Progress(sys.stderr))
    cosign = Cosign(program, folder)
    made = cosign("generate-key-pair")
    assert made.taken, made.words
    return cosign


def image_builder(cache: Path) -> tuple[list[str], dict[str, str]]:
    """
    Return what `make release` is told so that it builds images, and with which variables; nothing
    where this machine cannot.
    """
    if os.geteuid() != 0 or any(needs.missing().things.count(tool) for tool in _TOOLS):
        return [], {}
    cache.mkdir(parents=True, exist_ok=True)
    builder = Buildah(cache / "store", os.environ)
    builder.prepare()
    base = ensure_base(builder, cache, Progress(sys.stderr))
    return ["IMAGES=1", f"BASE={base}"], builder.environment


def head() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def released(
    clone: Path, commit: str, cosign: Cosign, images: tuple[list[str], dict[str, str]]
) -> Path:
    """Clone a commit, make a release of it, and return the folder with its files."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", commit], check=True)
    options, environment = images
    unset = {"SOURCE_DATE_EPOCH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    variables = {name: text for name, text in os.environ.items() if name not in unset}
    path = f"{variables['PATH']}:{environment.get('PATH', '')}"
    done = subprocess.run(
        ["make", "release", f"URL={WEBSITE}", f"KEY={cosign.key}", f"SOURCE={SOURCE}", *options],
        cwd=clone,
        env={**variables, **environment, "PATH": path, "COSIGN_PASSWORD": PASSWORD},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return clone / "dist"


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
