"""The chart as the file that Helm installs: deploy/chart, without what is no part of it."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "gpufence"


def packed(chart: Path, licence: bytes, moment: int) -> bytes:
    """Return what `helm package` would write, and LICENSE, with one moment and nobody's name."""
    ignored = {
        line
        for line in (chart / ".helmignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    }
    files = {
        str(path.relative_to(chart)): path.read_bytes()
        for path in chart.rglob("*")
        if path.is_file() and path.name not in {*ignored, ".helmignore"}
    }
    files["LICENSE"] = licence
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=moment) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(files, key=lambda name: (name != "Chart.yaml", name)):
            entry = tarfile.TarInfo(f"{_NAME}/{name}")
            entry.size, entry.mtime = len(files[name]), moment
            archive.addfile(entry, io.BytesIO(files[name]))
    return buffer.getvalue()
