"""
The plugin as one file: our packages out of the wheel, and of its dependencies what is Python.

Nothing is compiled and nothing compressed, so that the file runs on every machine and its bytes
follow from the sources, the lock and a moment alone.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
import zipfile
from base64 import urlsafe_b64encode
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.metadata import Distribution, PackagePath

INSIDE: Final = Path(__file__).parent / "inside"
OURS: Final = ("gpufence", "kube", "kubectl_gpufence")
DEPENDENCIES: Final = (
    *("certifi", "charset-normalizer", "idna", "kubernetes", "oauthlib", "pyyaml"),
    *("requests", "requests-oauthlib", "typing-extensions", "urllib3"),
)
"""What reading a kubeconfig and speaking to an API server take of requirements/plugin.txt."""

_OF_KUBERNETES = re.compile(r"kubernetes/(config/\w+(?<!_test)|client/configuration)\.py")
_SHEBANG = b"#!/usr/bin/env python3\n"
_READABLE = 0o100644
_PINNED = re.compile(r"^([a-z0-9-]+)==([^ ]+)", re.MULTILINE)
_FIRST_MOMENT = 315532800  # 1980, before which zip files know no time


class ReleaseError(Exception):
    """The environment is not the one that the lock describes, or the sources have no moment."""


def application(wheel: Path, lock: str, moment: int) -> bytes:
    """
    Return the zip application that is both plugins.

    Raises ReleaseError where what is installed differs from the lock, or from what was installed.
    """
    files = {
        "__main__.py": (INSIDE / "start.py").read_bytes(),
        "kubernetes/__init__.py": b"",
        "kubernetes/client/__init__.py": (INSIDE / "client.py").read_bytes(),
        **dict(_of_wheel(wheel)),
    }
    pinned = dict(_PINNED.findall(lock))
    for name in DEPENDENCIES:
        files |= dict(_of_dependency(name, pinned))
    return _SHEBANG + zipped(files, moment, ahead=len(_SHEBANG))


def zipped(files: Mapping[str, bytes], moment: int, *, ahead: int = 0) -> bytes:
    """
    Return a zip file that stores these files by their names, `ahead` bytes behind what is before.
    """
    date = time.gmtime(max(moment, _FIRST_MOMENT))
    buffer = io.BytesIO()
    buffer.write(bytes(ahead))
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date[:6])
            entry.create_system = 3  # Unix, whose permissions follow
            entry.external_attr = _READABLE << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()[ahead:]


def _of_wheel(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".dist-info/licenses/LICENSE"):
                yield "licenses/gpufence/LICENSE", archive.read(name)
            elif name.endswith(".dist-info/METADATA") or (  # has the version
                PurePosixPath(name).parts[0] in OURS and not name.endswith("/")
            ):
                yield name, archive.read(name)


def _of_dependency(name: str, pinned: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    found = distribution(name)
    if found.version != pinned.get(name):
        raise ReleaseError(
            f"{name} {found.version} is installed, and requirements/plugin.txt says "
            f"{pinned.get(name, 'nothing of it')}; remedy: make setup"
        )
    for file in found.files or []:
        inside = _name_inside(name, file)
        if inside:
            yield inside, _unchanged(found, file)


def _name_inside(name: str, file: PackagePath) -> str:
    """Return where a file of a dependency goes in the archive; empty: it stays outside."""
    folder = file.parts[0]
    if folder.endswith(".dist-info"):
        is_licence = file.name.upper().startswith(("LICEN", "COPYING", "NOTICE", "AUTHORS"))
        return f"licenses/{name}/{file.name}" if is_licence else ""
    if name == "kubernetes":
        return str(file) if _OF_KUBERNETES.fullmatch(str(file)) else ""
    if ".." in file.parts or file.suffix not in {".py", ".pem"} or folder == "_yaml":
        return ""
    return str(file)


def _unchanged(found: Distribution, file: PackagePath) -> bytes:
    content = Path(str(found.locate_file(file))).read_bytes()
    if file.hash is not None:
        digest = urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest()).decode()
        if digest.rstrip("=") != file.hash.value:
            raise ReleaseError(
                f"{file} is not what {found.metadata['Name']} was installed with; "
                "remedy: make clean setup"
            )
    return content
