"""
Make one archive of several, so that the layers which images share are read once.
"""

from __future__ import annotations

import io
import json
import tarfile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MANIFEST = "manifest.json"


def merge(archives: Sequence[Path], stream: IO[bytes]) -> None:
    """
    Write archives of `docker save`'s form as a single one of that form.

    Layers and configurations are named by their content; the lists of images are joined. What else
    there is repeats that for versions of Docker that nobody has any more.
    """
    images: list[object] = []
    written = {MANIFEST, "repositories"}
    with tarfile.open(fileobj=stream, mode="w|") as merged:
        for archive in archives:
            with tarfile.open(archive) as single:
                images += json.loads(_content(single, single.getmember(MANIFEST)).read())
                for member in single:
                    if member.isfile() and "/" not in member.name and member.name not in written:
                        written.add(member.name)
                        merged.addfile(member, _content(single, member))
        listed = json.dumps(images).encode()
        entry = tarfile.TarInfo(MANIFEST)
        entry.size = len(listed)
        merged.addfile(entry, io.BytesIO(listed))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name} of an archive is no file")
    return content
