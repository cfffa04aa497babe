"""C libraries of ours: compiled once per content of their sources, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from simulator.nvml.errors import LibraryError

FLAGS = (
    *("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"),
    *("-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wl,-z,defs"),
)
_SHOWN_LINES = 12


@dataclass(frozen=True)
class SharedLibrary:
    """
    One library to be: `name` is its file and SONAME, `headers` folders beside those of `sources`.

    `links` are libraries built before into the same folder, `versions` what a linker script says.
    """

    name: str
    sources: tuple[Path, ...]
    headers: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    versions: str = ""

    @property
    def arguments(self) -> list[str]:
        return [*FLAGS, *self.flags, f"-Wl,-soname,{self.name}", *map("-l:{}".format, self.links)]


def compiled(label: str, libraries: tuple[SharedLibrary, ...], cache: Path | None = None) -> Path:
    """
    Return the folder with these libraries, building it if no earlier build of them is there.

    Safe to call from several processes at once: each builds aside and moves the whole into place.
    """
    folder = (cache or default_cache()) / f"{label}-{_digest(libraries)}"
    if not all((folder / library.name).exists() for library in libraries):
        _build(libraries, folder)
    return folder


def default_cache() -> Path:
    """Return our part of the user's cache folder."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(named) if named else Path.home() / ".cache") / "gpufence"
    except RuntimeError as error:
        raise LibraryError("no home folder to keep the library in; set HOME") from error


def _digest(libraries: tuple[SharedLibrary, ...]) -> str:
    digest = hashlib.sha256()
    for library in libraries:
        digest.update(repr((library.arguments, library.versions)).encode())
        folders = {source.parent for source in library.sources} | set(library.headers)
        headers = [header for folder in folders for header in folder.glob("*.h")]
        for source in sorted({*library.sources, *headers}):
            digest.update(source.name.encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _build(libraries: tuple[SharedLibrary, ...], folder: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LibraryError("no C compiler: neither cc, gcc nor clang; on Debian: apt install gcc")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise LibraryError(f"{folder.parent}: {error.strerror}; set HOME elsewhere") from error
    try:
        for library in libraries:
            _compile(compiler, library, aside)
        _install(aside, folder, libraries)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _compile(compiler: str, library: SharedLibrary, folder: Path) -> None:
    command = [compiler, "-o", str(folder / library.name), *map(str, library.sources)]
    if library.versions:
        script = folder / f"{library.name}.map"
        script.write_text(library.versions, encoding="utf-8")
        command.append(f"-Wl,--version-script={script}")
    command += [f"-L{folder}", *library.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = "\n".join(done.stderr.splitlines()[:_SHOWN_LINES])
        raise LibraryError(f"{compiler} could not compile {library.name}:\n{lines}")


def _install(aside: Path, folder: Path, libraries: tuple[SharedLibrary, ...]) -> None:
    aside.chmod(0o755)
    try:
        os.rename(aside, folder)  # noqa: PTH104 - Path.rename would say the same
    except OSError:
        if not all((folder / library.name).exists() for library in libraries):
            raise
