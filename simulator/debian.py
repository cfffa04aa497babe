"""
Debian's programs for tests, without root: `python -m simulator build chromium prometheus`.

What the machine has on its search path is taken. Else apt chooses, fetches and verifies the package
and what it needs of packages that are not installed here, with lists of its own; all is unpacked
below the cache folder, and started there with its own libraries and fonts. Nothing is installed.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simulator.controlplane.build import cache_folder
from simulator.controlplane.errors import BuildError
from simulator.controlplane.folders import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simulator.progress import Progress

_TAIL_LINES: Final = 5
_MIB: Final = 1 << 20
_URI: Final = re.compile(r"^'[^']+' (?P<file>\S+) (?P<size>\d+)(?: \S*)?$", re.MULTILINE)
_OF_THE_MACHINE: Final = frozenset({"libc6", "libc-bin"})
"""The loader is the machine's, and takes no other C library than the one beside it."""

_LAUNCHER: Final = """\
#!/bin/sh
# Starts Debian's program where it was unpacked, with the libraries and fonts that came with it.
here=${{0%/*}}/..
export LD_LIBRARY_PATH="{libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export FONTCONFIG_FILE="$here/fonts.conf"
export XDG_DATA_DIRS="$here/root/usr/share:/usr/local/share:/usr/share"
exec "$here/root/{path}" "$@"
"""
_FONTS: Final = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir prefix="relative">root/usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""
_SETTINGS: Final = """\
Dir::State "{folder}/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "{folder}/cache";
Dir::Cache::archives "{folder}/cache/archives";
Debug::NoLocking "1";
APT::Sandbox::User "";
APT::Get::Assume-Yes "1";
APT::Install-Recommends "0";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "60";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear DPkg::Post-Invoke;
"""


@dataclass(frozen=True, slots=True)
class Program:
    """Where a package has it, and what it is called where the machine has it."""

    path: str
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Packaged:
    """A package of Debian, the programs of it that tests start, and what fetching it takes."""

    package: str
    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """A package that apt would fetch."""

    file: str
    size: int

    @property
    def package(self) -> str:
        return self.file.partition("_")[0]


CHROMIUM: Final = Packaged(
    "chromium", (Program("usr/lib/chromium/chromium", ("chromium", "google-chrome")),)
)
PROMETHEUS: Final = Packaged(
    "prometheus",
    (
        Program("usr/bin/prometheus", ("prometheus",)),
        Program("usr/bin/promtool", ("promtool",)),
    ),
)
REGISTRY: Final = Packaged(
    "docker-registry", (Program("usr/bin/docker-registry", ("docker-registry",)),)
)
SKOPEO: Final = Packaged("skopeo", (Program("usr/bin/skopeo", ("skopeo",)),))
PACKAGES: Final = (CHROMIUM, PROMETHEUS, REGISTRY, SKOPEO)


def planned(uris: str) -> tuple[Archive, ...]:
    """Read what `apt-get --print-uris` says that it would fetch."""
    return tuple(Archive(found["file"], int(found["size"])) for found in _URI.finditer(uris))


def unpacked(archives: Iterable[Archive]) -> tuple[Archive, ...]:
    """Return which of them are started from the cache: all but the C library."""
    return tuple(each for each in archives if each.package not in _OF_THE_MACHINE)


def described(package: str, archives: tuple[Archive, ...]) -> str:
    """Say how much is fetched."""
    amount = sum(each.size for each in archives) // _MIB
    others = len(archives) - 1
    return f"fetching Debian's {package} and {others} packages that it needs, {amount} MiB"


def settings(folder: Path) -> str:
    """Write apt's settings: the machine's sources and keys, and all that changes in our folder."""
    return _SETTINGS.format(folder=folder)


def launcher(program: Program, libraries: Iterable[str]) -> str:
    """Write what starts a program; libraries are named by their folders in the unpacked tree."""
    folders = ":".join(f"$here/root/{each}" for each in libraries)
    return _LAUNCHER.format(libraries=folders, path=program.path)


def system_name(os_release: Mapping[str, str], machine: str) -> str:
    """Name what packages depend on, for a folder's name."""
    return "-".join((os_release.get("ID", "linux"), os_release.get("VERSION_ID", "0"), machine))


def find(packaged: Packaged, environment: Mapping[str, str]) -> dict[str, Path]:
    """Return where its programs are; those that are not there are left out."""
    beside = folder_of(packaged, environment) / "bin"
    found = {}
    for program in packaged.programs:
        places = (shutil.which(name, path=environment.get("PATH")) for name in program.names)
        own = beside / program.name
        place = next((Path(each) for each in places if each), own if own.is_file() else None)
        if place is not None:
            found[program.name] = place
    return found


def folder_of(packaged: Packaged, environment: Mapping[str, str]) -> Path:
    """Name the folder of a package: another one where what is made of it would be another."""
    content = f"{_LAUNCHER}{_FONTS}{packaged}".encode()
    system = system_name(platform.freedesktop_os_release(), platform.machine())
    folder = cache_folder(environment) / f"{packaged.package}-{system}"
    return folder / hashlib.sha256(content).hexdigest()[:12]


def ensure(
    packaged: Packaged, environment: Mapping[str, str], progress: Progress
) -> dict[str, Path]:
    """Return where each program is, fetching the package first where one is missing."""
    found = find(packaged, environment)
    if len(found) == len(packaged.programs):
        return found
    folder = folder_of(packaged, environment)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.parent / ".lock", progress):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder.parent) as partial:
                _make(packaged, Path(partial), environment, progress)
                (Path(partial) / "made").rename(folder)
    return find(packaged, environment)


def _make(
    packaged: Packaged, folder: Path, environment: Mapping[str, str], progress: Progress
) -> None:
    made = folder / "made"
    (made / "bin").mkdir(parents=True)
    (made / "fonts.conf").write_text(_FONTS, encoding="utf-8")
    _fetch(packaged.package, folder, made / "root", environment, progress)
    libraries = library_folders(made / "root")
    for program in packaged.programs:
        if not (made / "root" / program.path).is_file():
            raise BuildError(f"this system's package {packaged.package} has no {program.path}")
        start = made / "bin" / program.name
        start.write_text(launcher(program, libraries), encoding="utf-8")
        start.chmod(0o755)
        _run([str(start), "--version"], environment)


def _fetch(
    package: str, folder: Path, root: Path, environment: Mapping[str, str], progress: Progress
) -> None:
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program, path=environment.get("PATH")) is None:
            raise BuildError(
                f"{package} can be fetched on Debian alone: there is no {program} here"
            )
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    told = folder / "apt.conf"
    told.write_text(settings(folder), encoding="utf-8")
    apt = ["apt-get", "-qq", "-c", str(told)]
    with progress.step("reading which packages Debian has"):
        _run([*apt, "update"], environment)
    archives = planned(_run([*apt, "install", "--print-uris", package], environment))
    with progress.step(described(package, archives)):
        _run([*apt, "install", "--download-only", package], environment)
    root.mkdir()
    with progress.step(f"unpacking {package} into {folder.parent}"):
        for each in unpacked(archives):
            archive = folder / "cache" / "archives" / each.file
            _run(["dpkg-deb", "--extract", str(archive), str(root)], environment)


def library_folders(root: Path) -> list[str]:
    """Return the folders of a tree with shared libraries in them, those of the system first."""
    found = {path.parent for path in root.rglob("lib*.so*")}
    return sorted((str(path.relative_to(root)) for path in found), key=lambda path: path.count("/"))


def _run(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        env={**environment, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).splitlines()[-_TAIL_LINES:])
        raise BuildError(f"{Path(command[0]).name} ended with {done.returncode}:\n{said}")
    return done.stdout
