"""
The files of a release by their names: what is built, what says where it is from, what is signed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.release.archive import application, zipped
from tools.release.chart import packed
from tools.release.images import image_archives
from tools.release.krew import NAME, Archive, manifest
from tools.release.provenance import BUILDER, statement
from tools.release.sources import ROOT
from tools.release.standalone import frozen, this_platform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.release.signing import Signer
    from tools.release.sources import Source

PLACEHOLDER: Final = "https://gpufence.example/releases"
SUMS: Final = "SHA256SUMS"
PUBLIC_KEY: Final = "gpufence.pub"
_PROGRAM: Final = f"kubectl-{NAME}"


@dataclass(frozen=True, slots=True)
class Order:
    """
    What somebody wants of a release: where it will lie, who builds and signs it, and the parts
    that not every machine can make.
    """

    website: str = PLACEHOLDER
    builder: str = BUILDER
    signer: Signer | None = None
    freezer: Path | None = None  # the Python that has PyInstaller
    base: str = ""  # of the images


def release(source: Source, order: Order) -> dict[str, bytes]:
    """
    Return the files of a release by their names.

    Raises ReleaseError where the environment is not that of the lock, or a part cannot be made.
    """
    version = project_version()
    files = _built(version, source.moment, order)
    provenance = f"{NAME}-{version}.provenance.json"
    files[provenance] = statement(files, _locks(order), source, _parameters(order), order.builder)
    files[SUMS] = checksums(files)
    if order.signer is None:
        return files
    return files | _signed(order.signer, files[SUMS], provenance, files[provenance])


def project_version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def checksums(files: Mapping[str, bytes]) -> bytes:
    """Return what `sha256sum --check` reads."""
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return "".join(lines).encode()


def _built(version: str, moment: int, order: Order) -> dict[str, bytes]:
    sys.stderr.write("==> wheel, plugin and chart\n")
    with tempfile.TemporaryDirectory() as folder:
        wheel = _wheel(Path(folder), moment)
        lock = (ROOT / "requirements" / "plugin.txt").read_text(encoding="utf-8")
        plugin = application(wheel, lock, moment)
        files = {wheel.name: wheel.read_bytes(), f"{_PROGRAM}-{version}.pyz": plugin}
    archives = _archives(version, plugin, moment, order)
    files |= {archive.name: archive.content for archive in archives}
    files[f"{NAME}.yaml"] = manifest(version, archives, order.website).encode()
    files[f"{NAME}-{version}.tgz"] = packed(ROOT / "deploy" / "chart", _licence(), moment)
    if order.base:
        files |= image_archives(order.base, version, moment)
    return files


def _archives(version: str, plugin: bytes, moment: int, order: Order) -> list[Archive]:
    """Return what krew fetches: first what has its own Python, then what runs wherever one is."""
    stem, archives = f"{_PROGRAM}-{version}", []
    if order.freezer is not None:
        system, machine = this_platform()
        sys.stderr.write(f"==> the plugin with a Python of its own, for {system}-{machine}\n")
        own = _for_krew(frozen(order.freezer, _PROGRAM, plugin, moment), moment)
        archives.append(Archive(f"{stem}-{system}-{machine}.zip", own, system, machine))
    content = _for_krew({_PROGRAM: plugin}, moment)
    return archives + [Archive(f"{stem}.zip", content, each) for each in ("darwin", "linux")]


def _for_krew(files: Mapping[str, bytes], moment: int) -> bytes:
    return zipped({**files, "LICENSE": _licence()}, moment, executable=_PROGRAM)


def _licence() -> bytes:
    return (ROOT / "LICENSE").read_bytes()


def _signed(signer: Signer, sums: bytes, provenance: str, said: bytes) -> dict[str, bytes]:
    stem = provenance.removesuffix(".json")
    return {
        PUBLIC_KEY: signer.public,
        f"{SUMS}.sig": signer.signature(sums),
        f"{SUMS}.sigstore.json": signer.bundle(sums),
        f"{stem}.intoto.json": signer.envelope(said),
        f"{stem}.sigstore.json": signer.attestation(said),
    }


def _locks(order: Order) -> dict[str, bytes]:
    """Return the locks that decide what is in the files."""
    names = ["dev", "plugin"]
    if order.freezer is not None:
        names.append("release")
    if order.base:
        names += ["agent", "certs", "controller", "webhook"]
    return {
        f"requirements/{name}.txt": (ROOT / "requirements" / f"{name}.txt").read_bytes()
        for name in names
    }


def _parameters(order: Order) -> dict[str, str]:
    parameters = {"URL": order.website, "STANDALONE": "1" if order.freezer else "0"}
    return parameters | ({"IMAGES": order.base} if order.base else {})


def _wheel(folder: Path, moment: int) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--quiet"]
    command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    # The build backend looks for its own program beside the interpreter through PATH.
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(moment), "PATH": path}
    subprocess.run(command, env=environment, check=True)
    return next(folder.glob("*.whl"))
