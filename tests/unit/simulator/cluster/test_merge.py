"""
Archives of images joined into one.
"""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

from simulator.cluster.inside.containers import merge_archives

if TYPE_CHECKING:
    from pathlib import Path


def archive(path: Path, image: str, *layers: str) -> Path:
    """
    Write an archive as buildah does, the content of each layer being its name.
    """
    listed = [{"Config": f"{image}.json", "RepoTags": [image], "Layers": list(layers)}]
    with tarfile.open(path, "w") as tar:
        for name in (*layers, f"{image}.json", "repositories"):
            _add(tar, name, name.encode())
        _add(tar, f"{image}/VERSION", b"1.0")
        link = tarfile.TarInfo(f"{image}/layer.tar")
        link.type, link.linkname = tarfile.SYMTYPE, f"../{layers[0]}"
        tar.addfile(link)
        _add(tar, "manifest.json", json.dumps(listed).encode())
    return path


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def merged(*archives: Path) -> tarfile.TarFile:
    stream = io.BytesIO()
    merge_archives(archives, stream)
    stream.seek(0)
    return tarfile.open(fileobj=stream)


def test_shared_layers_are_written_once(tmp_path: Path) -> None:
    """
    What several archives have by the same name has the same content, and is needed once.
    """
    one = archive(tmp_path / "one.tar", "one", "base.tar", "a.tar")
    two = archive(tmp_path / "two.tar", "two", "base.tar", "b.tar")

    assert [
        "base.tar",
        "a.tar",
        "one.json",
        "b.tar",
        "two.json",
        "manifest.json",
    ] == merged(one, two).getnames()


def test_content_survives(tmp_path: Path) -> None:
    """
    Layers arrive as they were.
    """
    joined = merged(archive(tmp_path / "one.tar", "one", "base.tar"))
    layer = joined.extractfile("base.tar")

    assert layer is not None
    assert b"base.tar" == layer.read()


def test_every_image_is_listed(tmp_path: Path) -> None:
    """
    The one list names the images of all archives.
    """
    one = archive(tmp_path / "one.tar", "one", "base.tar")
    two = archive(tmp_path / "two.tar", "two", "base.tar")
    manifest = merged(one, two).extractfile("manifest.json")

    assert manifest is not None
    assert [["one"], ["two"]] == [image["RepoTags"] for image in json.loads(manifest.read())]
