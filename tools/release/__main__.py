"""`make release`: the wheel, the plugin as one file, the chart, and their checksums, in dist/."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools import ROOT
from tools.release.archive import ReleaseError, application
from tools.release.chart import packed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUMS: Final = "SHA256SUMS"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of a release into a folder; the same commit gives the same bytes."""
    command = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    command.add_argument("--folder", type=Path, default=ROOT / "dist", metavar="FOLDER")
    call = command.parse_args(argv)
    try:
        files = release(source_moment())
    except ReleaseError as error:
        sys.stderr.write(f"make release: {error}\n")
        return 1
    call.folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (call.folder / name).write_bytes(content)
        (call.folder / name).chmod(0o755 if name.endswith(".pyz") else 0o644)
    sys.stdout.write(f"{files[SUMS].decode()}==> in {call.folder}\n")
    if changed := len(_git("status", "--porcelain").splitlines()):
        sys.stderr.write(f"make release: {changed} files are not committed; do not publish this\n")
    return 0


def release(moment: int) -> dict[str, bytes]:
    """
    Return the files of a release by their names, as of a moment.

    Raises ReleaseError where what is installed is not what the lock says.
    """
    version = project_version()
    with tempfile.TemporaryDirectory() as folder:
        wheel = _wheel(Path(folder), moment)
        lock = (ROOT / "requirements" / "plugin.txt").read_text(encoding="utf-8")
        plugin = application(wheel, lock, moment)
        files = {wheel.name: wheel.read_bytes(), f"kubectl-gpufence-{version}.pyz": plugin}
    licence = (ROOT / "LICENSE").read_bytes()
    files[f"gpufence-{version}.tgz"] = packed(ROOT / "deploy" / "chart", licence, moment)
    return files | {SUMS: checksums(files)}


def project_version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def checksums(files: Mapping[str, bytes]) -> bytes:
    """Return what `sha256sum --check` reads."""
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return "".join(lines).encode()


def source_moment() -> int:
    """
    Return SOURCE_DATE_EPOCH, or else when the sources were committed.

    Raises ReleaseError where neither is known.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    if not text.isdecimal():
        raise ReleaseError(
            f"SOURCE_DATE_EPOCH {text!r} is no number of seconds and git knows no commit; "
            "remedy: SOURCE_DATE_EPOCH=seconds make release"
        )
    return int(text)


def _wheel(folder: Path, moment: int) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--quiet"]
    command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    # The build backend looks for its own program beside the interpreter through PATH.
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(moment), "PATH": path}
    subprocess.run(command, env=environment, check=True)
    return next(folder.glob("*.whl"))


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
