"""
`make release`: the wheel, the plugin as one file, its archive and manifest for krew, the chart, and
checksums.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from deploy.release.archive import ReleaseError, application, zipped
from deploy.release.chart import packed
from deploy.release.krew import NAME, manifest

ROOT = Path(__file__).resolve().parents[2]
_WEBSITE = "https://gpufence.example/releases"
_NOT_YET = "images (make images), a file with its own Python, provenance, signatures"


def main() -> int:
    """
    Write the files of a release into a folder, and say what is not among them.
    """
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument(
        "--website", default=_WEBSITE, metavar="URL", help="below which the files will lie"
    )
    call = parser.parse_args()
    try:
        moment = source_moment()
        files = release(moment, call.website.rstrip("/"))
    except ReleaseError as error:
        sys.stderr.write(f"make release: {error}\n")
        return 1
    call.folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (call.folder / name).write_bytes(content)
        (call.folder / name).chmod(0o755 if name.endswith(".pyz") else 0o644)
    sys.stdout.write(files["SHA256SUMS"].decode())
    sys.stdout.write(f"==> in {call.folder}; not yet: {_NOT_YET}\n")
    if changes := _git("status", "--porcelain"):
        count = len(changes.splitlines())
        sys.stderr.write(f"make release: {count} files are not committed; do not publish this\n")
    return 0


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


def release(moment: int, website: str) -> dict[str, bytes]:
    """
    Return the files of a release by their names.

    Raises ReleaseError where the environment is not that of the lock.
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    with tempfile.TemporaryDirectory() as folder:
        wheel = _wheel(Path(folder), moment)
        lock = (ROOT / "requirements" / "plugin.txt").read_text(encoding="utf-8")
        plugin = application(wheel, lock, moment)
        files = {wheel.name: wheel.read_bytes(), f"kubectl-{NAME}-{version}.pyz": plugin}
    licence = (ROOT / "LICENSE").read_bytes()
    inside = {f"kubectl-{NAME}": plugin, "LICENSE": licence}
    archive = f"kubectl-{NAME}-{version}.zip"
    files[archive] = zipped(inside, moment, executable=f"kubectl-{NAME}")
    files[f"{NAME}.yaml"] = manifest(version, archive, files[archive], website).encode()
    files[f"{NAME}-{version}.tgz"] = packed(ROOT / "deploy" / "chart", licence, moment)
    files["SHA256SUMS"] = checksums(files)
    return files


def checksums(files: dict[str, bytes]) -> bytes:
    """
    Return what `sha256sum --check` reads.
    """
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return "".join(lines).encode()


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
