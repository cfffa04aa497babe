"""An image as files: what a container runtime would make of its archive."""

import json
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WHITEOUT = ".wh."
READ_ONLY = (
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" '
    '&& exec chroot --userspec="$1" "$0" /usr/bin/env -i "$@"'
)


@dataclass(frozen=True)
class Unpacked:
    root: Path
    config: dict[str, Any]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the image as its user, on its root, which is read-only."""
        script = READ_ONLY.replace('"$@"', '"${@:2}"')
        environment = self.config["config"]["Env"]
        return subprocess.run(
            [
                *("unshare", "--mount", "--fork", "bash", "-c", script),
                *(str(self.root), self.config["config"]["User"], *environment, *command),
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    def files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]


def unpack(archive: Path, folder: Path) -> Unpacked:
    """Put the layers of a docker-archive upon each other."""
    layers = folder / "layers"
    layers.mkdir()
    subprocess.run(["tar", "--extract", "-f", archive, "-C", layers], check=True)
    (manifest,) = json.loads((layers / "manifest.json").read_text(encoding="utf-8"))
    root = folder / "root"
    root.mkdir()
    for layer in manifest["Layers"]:
        _apply(layers / layer, root)
    config = json.loads((layers / manifest["Config"]).read_text(encoding="utf-8"))
    shutil.rmtree(layers)
    return Unpacked(root, config)


def _apply(layer: Path, root: Path) -> None:
    with tarfile.open(layer) as archive:
        for name in archive.getnames():
            path = root / name
            if path.name.startswith(WHITEOUT):
                gone = path.with_name(path.name.removeprefix(WHITEOUT))
                if gone.is_dir() and not gone.is_symlink():
                    shutil.rmtree(gone)
                else:
                    gone.unlink(missing_ok=True)
    # tar itself, since it keeps owners and modes, as runtimes do.
    subprocess.run(
        ["tar", "--extract", "--same-owner", "--exclude", f"{WHITEOUT}*", "-f", layer, "-C", root],
        check=True,
    )
