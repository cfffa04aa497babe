"""
The plugin as one file with a Python of its own, for the platform that it is built on.

PyInstaller makes it of the zip application, in an environment that has nothing else
(requirements/release.txt), so that both are the same program.
"""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

from tools.release.archive import INSIDE, ReleaseError

_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_START: Final = "__main__.py"
_LICENCES: Final = "licenses/"
# What PyInstaller itself needs, and a library under the GPL that the plugin has no use for.
_LEFT_OUT: Final = ("_distutils_hack", "packaging", "readline", "setuptools")
_DOCUMENTS: Final = Path("/usr/share/doc")
_LISTED: Final = """
import sys
from PyInstaller.archive.readers import CArchiveReader
print(*(name for name, entry in CArchiveReader(sys.argv[1]).toc.items() if entry[4] == "b"))
"""


def this_platform() -> tuple[str, str]:
    """Name this machine as Go does, and krew: linux, amd64."""
    machine = platform.machine().lower()
    return platform.system().lower(), _MACHINES.get(machine, machine)


def frozen(freezer: Path, name: str, application: bytes, moment: int) -> dict[str, bytes]:
    """
    Return the program by its name, and beside it the licences of all that is in it.

    Raises ReleaseError where PyInstaller cannot make it.
    """
    with zipfile.ZipFile(io.BytesIO(application)) as content:
        files = {entry: content.read(entry) for entry in content.namelist()}
    with tempfile.TemporaryDirectory(prefix="gpufence-release-") as folder:
        program = _freeze(freezer, name, files, Path(folder), moment)
        libraries = _output([str(freezer), "-c", _LISTED, str(program)]).split()
        licences = {entry: text for entry, text in files.items() if entry.startswith(_LICENCES)}
        return {name: program.read_bytes(), **licences, **_licences_of_python(libraries)}


def _freeze(freezer: Path, name: str, files: dict[str, bytes], folder: Path, moment: int) -> Path:
    app = folder / "app"
    options: list[str] = []
    for entry, content in files.items():
        if entry.startswith(_LICENCES):
            continue
        (app / entry).parent.mkdir(parents=True, exist_ok=True)
        (app / entry).write_bytes(content)
        if not entry.endswith(".py"):
            options += ["--add-data", f"{app / entry}:{PurePosixPath(entry).parent}"]
        elif entry != _START:
            options += ["--hidden-import", _module(entry)]
    command = [str(freezer), "-m", "PyInstaller", "--onefile", "--noconfirm", "--name", name]
    command += ["--log-level", "ERROR", "--paths", str(app), "--specpath", str(folder)]
    command += ["--distpath", str(folder / "dist"), "--workpath", str(folder / "build")]
    command += [f"--exclude-module={module}" for module in _LEFT_OUT]
    command += ["--runtime-hook", str(INSIDE / "frozen.py"), *options, str(app / _START)]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(app),
        "SOURCE_DATE_EPOCH": str(moment),
        "PYINSTALLER_CONFIG_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    program = folder / "dist" / name
    if done.returncode or not program.is_file():
        raise ReleaseError(
            f"PyInstaller could not make {name} with {freezer}: {done.stderr.strip()[-1000:]}\n"
            "remedy: a Python with a shared library (on Debian: apt install libpython3-dev), or "
            "make release STANDALONE=0"
        )
    return program


def _module(entry: str) -> str:
    return entry.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _licences_of_python(libraries: list[str]) -> dict[str, bytes]:
    """Return Python's licence, and those of Debian's packages whose libraries came along."""
    texts = {"python": Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"}
    shared = [f"*/{library}" for library in libraries if "/" not in library]
    for line in _output(["dpkg-query", "--search", *shared]).splitlines():
        package = line.partition(":")[0]
        texts[package] = _DOCUMENTS / package / "copyright"
    return {
        f"{_LICENCES}{name}/{path.name}": path.read_bytes()
        for name, path in texts.items()
        if path.is_file()
    }


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:  # dpkg-query, where there is no Debian
        return ""
