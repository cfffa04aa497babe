"""
Find out whether layers of files can be mounted upon each other.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path


def overlay_works(folder: Path) -> bool:
    """
    Try it in a folder, since it depends on the kernel and on the file system there.
    """
    with tempfile.TemporaryDirectory(prefix="overlay-", dir=folder) as name:
        trial = Path(name)
        for part in ("lower", "upper", "work", "merged"):
            (trial / part).mkdir()
        options = f"lowerdir={trial}/lower,upperdir={trial}/upper,workdir={trial}/work"
        done = subprocess.run(
            # The mount ends with the namespace, and that with its only process.
            [
                *("unshare", "--mount", "mount", "-t", "overlay", "-o", options),
                *("overlay", f"{trial}/merged"),
            ],
            capture_output=True,
            check=False,
        )
        return done.returncode == 0
