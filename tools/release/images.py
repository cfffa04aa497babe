"""The images as archives in OCI's layout, and by which digests registries will know them."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tools.release.archive import ReleaseError
from tools.release.krew import NAME
from tools.release.sources import ROOT

PROGRAMS: Final = ("webhook", "agent", "certs", "controller")
_BUILD: Final = ROOT / "deploy" / "images" / "build"


def image_archives(base: str, version: str, moment: int) -> dict[str, bytes]:
    """
    Build the images on a base with buildah; return an archive of each, and a list of digests.

    Raises ReleaseError where they cannot be built.
    """
    files: dict[str, bytes] = {}
    digests = []
    with tempfile.TemporaryDirectory(prefix="gpufence-release-") as folder:
        for number, program in enumerate(PROGRAMS, start=1):
            sys.stderr.write(f"==> image {program} ({number}/{len(PROGRAMS)}), about a minute\n")
            layout = _built(program, base, version, moment, Path(folder))
            forget_stages(layout)
            files[f"{NAME}-{program}-{version}.oci.tar"] = packed(layout, moment)
            digests.append(f"{digest_of(layout)}  {NAME}/{program}:{version}\n")
    return {**files, f"{NAME}-{version}.images.txt": "".join(digests).encode()}


def forget_stages(layout: Path) -> None:
    """Take out of an image's history the names of stages that buildah makes up in every build."""
    index = _read(layout / "index.json")
    manifest = _taken(layout, index["manifests"][0])
    config = _taken(layout, manifest["config"])
    for step in config.get("history", []):
        step.pop("comment", None)
    _put(layout, manifest["config"], config)
    _put(layout, index["manifests"][0], manifest)
    (layout / "index.json").write_text(json.dumps(index), encoding="utf-8")


def packed(layout: Path, moment: int) -> bytes:
    """Return a folder in OCI's layout as an archive, with one moment and nobody's name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(path for path in layout.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(str(path.relative_to(layout)))
            entry.size, entry.mtime = path.stat().st_size, moment
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return buffer.getvalue()


def digest_of(layout: Path) -> str:
    """Return the digest of the one image in a folder."""
    (image,) = _read(layout / "index.json")["manifests"]
    return str(image["digest"])


def _taken(layout: Path, descriptor: Any) -> Any:  # noqa: ANN401 (OCI's JSON)
    path = _blob(layout, descriptor["digest"])
    content = _read(path)
    path.unlink()
    return content


def _put(layout: Path, descriptor: Any, document: Any) -> None:  # noqa: ANN401 (OCI's JSON)
    content = json.dumps(document, sort_keys=True).encode()
    descriptor["digest"] = f"sha256:{hashlib.sha256(content).hexdigest()}"
    descriptor["size"] = len(content)
    _blob(layout, descriptor["digest"]).write_bytes(content)


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _read(path: Path) -> Any:  # noqa: ANN401 (OCI's JSON)
    return json.loads(path.read_text(encoding="utf-8"))


def _built(program: str, base: str, version: str, moment: int, folder: Path) -> Path:
    command = [str(_BUILD), "--engine", "buildah", "--base", base, "--name", NAME]
    command += ["--tag", version, "--moment", str(moment), "--oci", str(folder), program]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{program} could not be built:\n{done.stdout.strip()[-2000:]}")
    return folder / program
